// DatabaseWriter: writes a new database: an LMDB, a LevelDB, or HDF5 files for an HDF5Data layer. It
// is built in a temporary folder next to its destination and appears there atomically.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/databases/source.h"

namespace crema {

// The kind of database to write, and options.
struct DatabaseFormat {
  DatabaseFormat() = default;
  DatabaseFormat(Backend kind) : backend(kind) {}

  Backend backend = DataParameter::LMDB;
  bool overwrite = false;  // replaces an existing database; anything else is never replaced
  std::vector<std::string> classes;  // their names, which the database keeps; none: numbers only
  // For HDF5 files only, whose values are floats.
  int64_t rows = 10000;  // per file, at most
  int compression = 0;   // the level of gzip, 1 to 9; 0: none
  float scale = 1;       // values are multiplied by it
};

// For a moment the ending of a database that another one replaces, where names cannot be exchanged.
constexpr const char* kReplacedEnding = ".replaced";
// Added to a message about a missing database: if a process was killed at that moment and left the
// old one, "; DATABASE.replaced is ..."; else the databases in its folder, or nothing.
std::string missing_database_hint(const std::string& path);

class DatabaseWriter {
 public:
  virtual ~DatabaseWriter();
  DatabaseWriter(const DatabaseWriter&) = delete;
  DatabaseWriter& operator=(const DatabaseWriter&) = delete;

  // Records are written to disk a thousand at a time. An existing key is replaced; HDF5 files have
  // none.
  void put(const std::string& key, const google::protobuf::Message& record);
  // Call both after the last record: complete() writes everything to disk, finish() then gives the
  // database its name. To write several databases, call complete() for all before the first
  // finish(), which otherwise includes it.
  void complete();
  void finish();
  int64_t count() const { return count_; }

 protected:
  DatabaseWriter(const std::string& path, const DatabaseFormat& format);
  virtual void add(const std::string& key, const google::protobuf::Message& record) = 0;
  virtual void flush() = 0;
  virtual void close() = 0;
  // After the database has its name.
  virtual void named() {}

  // The record as bytes.
  std::string serialized(const std::string& key, const google::protobuf::Message& record) const;

  const std::string& path() const { return path_; }
  const std::string& temporary_path() const { return temporary_; }

 private:
  void put_in_place();

  std::string path_, temporary_, classes_;
  bool overwrite_ = false;
  int lock_ = -1;  // of the temporary folder
  int64_t count_ = 0;
  bool complete_ = false, finished_ = false;
};

// "00000042": keys are sorted as text, so numbers have leading zeros.
std::string numbered_key(int64_t number, int digits);

// Error when something with that name exists already, unless it is a database to be replaced.
std::unique_ptr<DatabaseWriter> create_database(const std::string& path,
                                                const DatabaseFormat& format);

std::unique_ptr<DatabaseWriter> create_lmdb(const std::string& path,
                                            const DatabaseFormat& format = {});
std::unique_ptr<DatabaseWriter> create_leveldb(const std::string& path,
                                               const DatabaseFormat& format = {});
// The folder `path` of HDF5 files, and the list PATH.txt for `hdf5_data_param { source }`. Records
// are Datums of one shape with bytes or floats.
std::unique_ptr<DatabaseWriter> create_hdf5(const std::string& path, const DatabaseFormat& format);

}  // namespace crema
