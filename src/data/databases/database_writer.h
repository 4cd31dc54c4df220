// DatabaseWriter: writes a new database. It is built in a temporary folder next to its destination
// and appears there atomically.
#pragma once

#include <memory>
#include <string>

#include "data/databases/source.h"

namespace crema {

class DatabaseWriter {
 public:
  virtual ~DatabaseWriter();
  DatabaseWriter(const DatabaseWriter&) = delete;
  DatabaseWriter& operator=(const DatabaseWriter&) = delete;

  // Records are written to disk a thousand at a time. An existing key is replaced.
  void put(const std::string& key, const google::protobuf::Message& record);
  // Call both after the last record: complete() writes everything to disk, finish() then gives the
  // database its name. To write several databases, call complete() for all before the first
  // finish(), which otherwise includes it.
  void complete();
  void finish();
  int64_t count() const { return count_; }

 protected:
  explicit DatabaseWriter(const std::string& path);
  virtual void add(const std::string& key, const std::string& value) = 0;
  virtual void flush() = 0;
  virtual void close() = 0;

  const std::string& path() const { return path_; }
  const std::string& temporary_path() const { return temporary_; }

 private:
  std::string path_, temporary_;
  int lock_ = -1;  // of the temporary folder
  int64_t count_ = 0;
  bool complete_ = false, finished_ = false;
};

// "00000042": keys are sorted as text, so numbers have leading zeros.
std::string numbered_key(int64_t number, int digits);

// Error when something with that name exists already.
std::unique_ptr<DatabaseWriter> create_database(const std::string& path, Backend backend);

std::unique_ptr<DatabaseWriter> create_lmdb(const std::string& path);
std::unique_ptr<DatabaseWriter> create_leveldb(const std::string& path);

}  // namespace crema
