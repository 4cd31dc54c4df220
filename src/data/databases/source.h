// Source: an indexable sequence of records. Every source returns messages as they are stored;
// decoding (data/images/record.h) and transforming (data/transforms/transform.h) come later.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "data/loader/dataset.h"
#include "proto/data.pb.h"

namespace crema {

// All functions are thread-safe.
class Source {
 public:
  virtual ~Source() = default;

  virtual int64_t size() const = 0;
  // `record`: a Datum, or an AnnotatedDatum. Error gives only the reason: the caller prefixes it
  // with describe(index).
  virtual void read(int64_t index, google::protobuf::Message& record) const = 0;
  virtual std::string key(int64_t index) const = 0;
  // The class of a Datum; none if it has several labels or a real one. As read().
  virtual std::optional<int64_t> class_of(int64_t index) const;

  // A source that only learns its size by reading everything overrides this.
  virtual RecordIndex record_index(int64_t position) const {
    return {position / size(), position % size()};
  }

  const std::string& path() const { return path_; }
  // `PATH, record 17 (key "00000017_cat.jpg")`, for messages; without the key if it cannot be read.
  std::string describe(int64_t index) const;

 protected:
  explicit Source(std::string path) : path_(std::move(path)) {}
  // Parses the stored bytes as such a message; Error when they are not one.
  static void parse(const void* bytes, size_t count, google::protobuf::Message& record);

 private:
  std::string path_;
};

using Backend = DataParameter::DB;

// Kinds that can be written: "lmdb", "leveldb" or "hdf5", in any case; Error for anything else.
Backend backend_named(const std::string& name);
const char* name_of(Backend backend);

// Opens a database for reading: a path, or for tar files names with braces. Error names the path,
// what is there and what was expected. Databases without records are refused as useless.
std::unique_ptr<Source> open_database(const std::string& path, Backend backend);

std::unique_ptr<Source> open_lmdb(const std::string& path);
std::unique_ptr<Source> open_leveldb(const std::string& path);
// A tar file, a folder or a list of them, or names with braces (data/databases/tar/tar_shards.h).
std::unique_ptr<Source> open_tar(const std::string& path);

}  // namespace crema
