// Reading HDF5 files: datasets of any real type as float32. The HDF5 library keeps state of its
// own: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tensor/shape.h"

namespace crema {

class Hdf5File {
 public:
  // Error names the path and why it cannot be read.
  explicit Hdf5File(const std::string& path);
  ~Hdf5File();
  Hdf5File(Hdf5File&&) noexcept;
  Hdf5File& operator=(Hdf5File&&) = delete;

  const std::string& path() const { return path_; }
  bool has(const std::string& dataset) const;
  // The datasets and groups at the root.
  std::vector<std::string> names() const;
  Shape shape(const std::string& dataset) const;
  // Whatever its type: whole numbers and doubles are converted.
  std::vector<float> read(const std::string& dataset) const;

 private:
  int64_t open(const std::string& dataset) const;
  std::string path_;
  int64_t file_ = -1;
};

}  // namespace crema
