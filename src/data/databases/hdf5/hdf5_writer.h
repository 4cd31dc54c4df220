// Hdf5Writer: writes HDF5 files, trees of named groups and datasets with weights and solver states.
// Names are paths: "data/conv1/0". Threads take turns: a second one waits until the file is closed.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tensor/shape.h"

namespace crema {

// A new file that commit() writes atomically. Missing groups in a name are created. The file is
// built in memory: the library does not survive a disk that fills up while it has the file open.
class Hdf5Writer {
 public:
  explicit Hdf5Writer(std::string path);
  ~Hdf5Writer();
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;

  // An empty group; a no-op when it exists.
  void group(const std::string& name);
  void floats(const std::string& name, const Shape& shape, const float* values);
  // The same in chunks of some rows each, compressed by gzip with this level unless it is 0.
  void chunked_floats(const std::string& name, const Shape& shape, int compression,
                      const float* values);
  void doubles(const std::string& name, const Shape& shape, const double* values);
  void integer(const std::string& name, int32_t value);
  void integers(const std::string& name, const std::vector<uint64_t>& values);
  void text(const std::string& name, const std::string& value);
  // Error when the file did not reach the disk.
  void commit();

 private:
  struct Image;
  void write(const std::string& name, const Shape& shape, int64_t type, const void* values);
  void write(const std::string& name, const Shape& shape, int64_t type, int64_t properties,
             const void* values);
  std::unique_lock<std::recursive_mutex> turn_;
  std::string path_;
  std::unique_ptr<Image> image_;
  int64_t file_ = -1;
};

}  // namespace crema
