// HDF5 files as trees of named groups and datasets, the way weights and solver states are kept in
// them. Names are paths: "data/conv1/0". The HDF5 library keeps state of its own: one thread at a
// time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tensor/shape.h"

namespace crema {

// True when the file starts as an HDF5 file does; false for any other content, and when there is no
// file.
bool is_hdf5(const std::string& path);

// A new file that appears whole, at commit(), or not at all. Groups on the way to a name are made.
// It is put together in memory: the library does not survive a disk that fills up while it has the
// file open.
class Hdf5Writer {
 public:
  explicit Hdf5Writer(std::string path);
  ~Hdf5Writer();
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;

  // An empty group; nothing happens when it exists.
  void group(const std::string& name);
  void floats(const std::string& name, const Shape& shape, const float* values);
  void doubles(const std::string& name, const Shape& shape, const double* values);
  void integer(const std::string& name, int32_t value);
  void integers(const std::string& name, const std::vector<uint64_t>& values);
  void text(const std::string& name, const std::string& value);
  // Error when the file did not reach the disk.
  void commit();

 private:
  struct Image;
  void write(const std::string& name, const Shape& shape, int64_t type, const void* values);
  std::string path_;
  std::unique_ptr<Image> image_;
  int64_t file_ = -1;
};

class Hdf5Reader {
 public:
  explicit Hdf5Reader(const std::string& path);
  ~Hdf5Reader();
  Hdf5Reader(const Hdf5Reader&) = delete;
  Hdf5Reader& operator=(const Hdf5Reader&) = delete;

  struct Child {
    std::string name;
    bool group = false;
  };

  bool has(const std::string& name) const;
  // Error when there is no such group.
  std::vector<Child> children(const std::string& group) const;
  // Error when there is no such dataset, or when it is of another kind.
  Shape shape(const std::string& name) const;
  std::vector<float> floats(const std::string& name) const;
  std::vector<uint64_t> integers(const std::string& name) const;
  std::string text(const std::string& name) const;

 private:
  int64_t open(const std::string& name) const;
  std::string path_;
  int64_t file_ = -1;
};

}  // namespace crema
