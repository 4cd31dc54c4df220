// Makes databases of the records of others.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/convert/convert.h"
#include "data/databases/source.h"

namespace crema {

// The records of all `from`, one database after the other. Keys are kept, and as LMDBs and LevelDBs
// are in the order of their keys, so is the result. If two of the databases have a key in common,
// and in shuffled and split databases, new keys give the order: the number, eight digits, and the
// old key, without a number that it begins with ("00000017_cat.jpg"). No record is skipped or
// changed, except that HDF5 files get decoded images. Class names are kept; Error if databases have
// different ones. shuffle: in random order; options.split does that anyway. Returns the number of
// records.
int64_t copy_records(const std::vector<std::shared_ptr<const Source>>& from, const std::string& to,
                     bool shuffle, const ConvertOptions& options, Log& log);

}  // namespace crema
