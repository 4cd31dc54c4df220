// Makes databases of the records of others.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/convert/convert.h"
#include "data/databases/source.h"

namespace crema {

// The records of all `from`, one database after the other. Keys are kept, and as LMDBs and LevelDBs
// are in the order of their keys, so is the result. Where two of the databases have a key in
// common, and in shuffled and split databases, new keys give the order: the number, eight digits,
// and the old key, without the number that it may begin with ("00000017_cat.jpg"). Nothing is left
// out, and no record is changed, but that HDF5 files get encoded images decoded. The names of classes
// are kept; Error where databases have different ones.
// shuffle: in random order; options.split does that anyway. Returns the number of records.
int64_t copy_records(const std::vector<std::shared_ptr<const Source>>& from, const std::string& to,
                     bool shuffle, const ConvertOptions& options, Log& log);

}  // namespace crema
