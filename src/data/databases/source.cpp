#include "data/databases/source.h"

#include "base/error.h"
#include "base/files.h"
#include "data/databases/database_writer.h"
#include "data/databases/tar/tar_shards.h"

namespace crema {

std::string Source::describe(int64_t index) const {
  try {
    return cat(path_, ", record ", index, " (key \"", key(index), "\")");
  } catch (const Error&) {
    return cat(path_, ", record ", index);  // the key of a damaged database cannot be read
  }
}

std::optional<int64_t> Source::class_of(int64_t index) const {
  Datum datum;
  read(index, datum);
  if (datum.labels_size() > 0) return {};
  return datum.label();
}

void Source::parse(const void* bytes, size_t count, google::protobuf::Message& record) {
  require(count > 0, "the record is empty");
  require(count <= INT32_MAX && record.ParseFromArray(bytes, static_cast<int>(count)), "its ",
          count, " bytes are not a message of type ", record.GetDescriptor()->name(),
          ": the database is damaged, or was not made for training");
}

Backend backend_named(const std::string& name) {
  const std::string lower = lower_case(name);
  if (lower == "lmdb") return DataParameter::LMDB;
  if (lower == "leveldb") return DataParameter::LEVELDB;
  if (lower == "hdf5") return DataParameter::HDF5;
  fail("unknown database backend \"", name, "\"", did_you_mean(lower, {"lmdb", "leveldb", "hdf5"}),
       "; there are lmdb, leveldb and hdf5");
}

const char* name_of(Backend backend) {
  if (backend == DataParameter::HDF5) return "hdf5";
  if (backend == DataParameter::TAR) return "tar";
  return backend == DataParameter::LMDB ? "lmdb" : "leveldb";
}

std::unique_ptr<Source> open_database(const std::string& path, Backend backend) {
  require(!path.empty(), "the path of a database is empty");
  require(backend != DataParameter::HDF5, path,
          ": a Data layer reads LMDB, LevelDB and tar files; the layer for HDF5 files is HDF5Data");
  require(backend == DataParameter::LMDB || backend == DataParameter::LEVELDB ||
              backend == DataParameter::TAR,
          path, ": databases of kind ", DataParameter::DB_Name(backend),
          " cannot be read; convert it to an LMDB");
  const bool braces = path.find('{') != std::string::npos;
  if (!file_exists(path) && !(braces && backend == DataParameter::TAR))
    fail(path, ": no such database",
         braces ? "; names with braces are for tar files, `backend: TAR`"
                : missing_database_hint(path));
  const bool looks_lmdb = file_exists(path + "/data.mdb"),
             looks_leveldb = file_exists(path + "/CURRENT");
  if (backend == DataParameter::TAR) {
    require(!looks_lmdb, path, ": is an LMDB; write `backend: LMDB`");
    require(!looks_leveldb, path, ": is a LevelDB; write `backend: LEVELDB`");
    return open_tar(path);
  }
  require(looks_lmdb || looks_leveldb || !looks_like_tar(path), path, ": is not ",
          backend == DataParameter::LMDB ? "an LMDB" : "a LevelDB",
          ", but tar files; write `backend: TAR`");
  if (backend == DataParameter::LMDB) {
    require(!looks_leveldb || looks_lmdb, path,
            ": is a LevelDB, not an LMDB; write `backend: LEVELDB`");
    return open_lmdb(path);
  }
  require(!looks_lmdb || looks_leveldb, path, ": is an LMDB, not a LevelDB; write `backend: LMDB`");
  return open_leveldb(path);
}

}  // namespace crema
