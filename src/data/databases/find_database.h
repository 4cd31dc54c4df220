// Opens a database of any kind: which one it is, is found by looking.
#pragma once

#include <memory>
#include <string>

#include "data/databases/source.h"

namespace crema {

struct FoundDatabase {
  Backend backend;
  std::unique_ptr<Source> source;
  int64_t bytes;  // of its files
};

// `path`: the folder of an LMDB or a LevelDB, a data.mdb, an HDF5 file, the list of such files, or
// their folder from a converter, or tar files (data/databases/tar/tar_shards.h). Error describes what
// is there instead.
FoundDatabase find_database(const std::string& path);

// "LMDB", "LevelDB", "HDF5", "tar".
const char* title_of(Backend backend);

// The kind of records in a database.
enum class RecordKind { datum, annotated, sparse };

// Found by the first record that says so.
RecordKind kind_of_records(const Source& source);
// Error that names the layer for such records, unless they are as expected.
void require_records(const Source& source, RecordKind expected);
// An empty one.
std::unique_ptr<google::protobuf::Message> new_record(RecordKind kind);
// The image and its label; null for sparse ones.
const Datum* datum_in(const google::protobuf::Message& record);
// Whether `record` has any field of its kind: bytes of another kind of message often parse, but
// leave nothing.
bool holds_sample(const google::protobuf::Message& record);

}  // namespace crema
