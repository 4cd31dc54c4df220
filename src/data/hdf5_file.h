// Reading HDF5 files: trees of named groups and datasets, in which data, weights and solver states
// are kept. Names are paths: "data/conv1/0". The HDF5 library keeps state of its own: one thread at
// a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/shape.h"

namespace crema {

// True when the file starts as an HDF5 file does; false for any other content, and when there is no
// file.
bool is_hdf5(const std::string& path);

class Hdf5File {
 public:
  // Error names the path and why it cannot be read.
  explicit Hdf5File(const std::string& path);
  ~Hdf5File();
  Hdf5File(const Hdf5File&) = delete;
  Hdf5File& operator=(const Hdf5File&) = delete;

  struct Child {
    std::string name;
    bool group = false;
  };

  bool has(const std::string& name) const;
  // What lies in a group, by name; none when the group does not exist, Error when it is a dataset.
  std::vector<Child> children(const std::string& group) const;

  // Of a dataset of numbers of any type, which are converted. Error when there is no such dataset,
  // or when it holds no numbers.
  Shape shape(const std::string& name) const;
  std::vector<float> floats(const std::string& name) const;
  std::vector<double> doubles(const std::string& name) const;
  std::vector<uint64_t> integers(const std::string& name) const;
  // Of a dataset that is a text of fixed length; Error as above.
  std::string text(const std::string& name) const;

  // Attributes of the file as a whole; `otherwise` when it has none of this name.
  double attribute(const std::string& name, double otherwise) const;
  std::string attribute(const std::string& name, const std::string& otherwise) const;

 private:
  int64_t open(const std::string& name) const;
  int64_t open_numbers(const std::string& name) const;
  template <typename T>
  std::vector<T> read(const std::string& name, int64_t type) const;
  std::string path_;
  int64_t file_ = -1;
};

}  // namespace crema
