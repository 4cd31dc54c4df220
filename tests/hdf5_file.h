// Reads the HDF5 files of the reference values.
#pragma once

#include <hdf5.h>

#include <string>
#include <vector>

#include "tensor/shape.h"

namespace crema::tests {

struct Hdf5Array {
  Shape shape;
  std::vector<double> values;
};

class Hdf5File {
 public:
  explicit Hdf5File(const std::string& path);
  ~Hdf5File();
  Hdf5File(const Hdf5File&) = delete;

  bool has(const std::string& path) const;
  // Names directly below a group; none when it does not exist.
  std::vector<std::string> children(const std::string& group) const;
  Hdf5Array read(const std::string& path) const;
  double number(const std::string& attribute, double otherwise) const;
  std::string text(const std::string& attribute) const;

 private:
  hid_t file_;
};

}  // namespace crema::tests
