#include "data/databases/source.h"

#include "base/error.h"
#include "base/files.h"

namespace crema {

std::string Source::describe(int64_t index) const {
  try {
    return cat(path_, ", record ", index, " (key \"", key(index), "\")");
  } catch (const Error&) {
    return cat(path_, ", record ", index);  // the key of a damaged database cannot be read
  }
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
  return backend == DataParameter::LMDB ? "lmdb" : "leveldb";
}

std::unique_ptr<Source> open_database(const std::string& path, Backend backend) {
  require(!path.empty(), "the path of a database is empty");
  require(backend != DataParameter::HDF5, path,
          ": a Data layer reads LMDB and LevelDB; the layer for HDF5 files is HDF5Data");
  require(backend == DataParameter::LMDB || backend == DataParameter::LEVELDB, path,
          ": databases of kind ", DataParameter::DB_Name(backend),
          " cannot be read; convert it to an LMDB");
  require(file_exists(path), path, ": no such database");
  const bool looks_lmdb = file_exists(path + "/data.mdb"),
             looks_leveldb = file_exists(path + "/CURRENT");
  if (backend == DataParameter::LMDB) {
    require(!looks_leveldb || looks_lmdb, path,
            ": is a LevelDB, not an LMDB; write `backend: LEVELDB`");
    return open_lmdb(path);
  }
  require(!looks_lmdb || looks_leveldb, path, ": is an LMDB, not a LevelDB; write `backend: LMDB`");
  return open_leveldb(path);
}

}  // namespace crema
