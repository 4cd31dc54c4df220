// Hdf5File: reads HDF5 files, trees of named groups and datasets with data, weights and solver
// states. Names are paths: "data/conv1/0". Threads may share it; calls take turns.
//
// Untrusted files are restricted to their purpose: everything must be in the file itself, and a
// dataset may not have more values than its stored bytes can contain. An Error names the violation,
// the file's path and the dataset.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/shape.h"

namespace crema {

// True when the file starts like an HDF5 file; false for any other content, and when it does not
// exist.
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
    // Equal for two names of one object.
    uint64_t identity = 0;
  };

  bool has(const std::string& name) const;
  // The contents of a group, by name; none when the group does not exist, Error when it is a
  // dataset.
  std::vector<Child> children(const std::string& group) const;

  // Read a dataset of numbers of any type and convert them. Error if there is no such dataset, or
  // if it does not contain numbers.
  Shape shape(const std::string& name) const;
  // Whether they are stored as integers with more bits than float32 can represent.
  bool wide_integers(const std::string& name) const;
  std::vector<float> floats(const std::string& name) const;
  std::vector<double> doubles(const std::string& name) const;
  std::vector<uint64_t> integers(const std::string& name) const;
  // The rows [first, first + count) of the first axis. `into` has room for them.
  void floats(const std::string& name, int64_t first, int64_t count, float* into) const;
  std::vector<double> doubles(const std::string& name, int64_t first, int64_t count) const;
  // How many rows are stored in one piece that is read and decompressed as a whole; 0: the dataset
  // is not chunked.
  int64_t rows_in_chunk(const std::string& name) const;
  // Read a dataset of one number.
  float real(const std::string& name) const;
  uint64_t integer(const std::string& name) const;
  // Reads a dataset that is one string of fixed length.
  std::string text(const std::string& name) const;

  // Attributes of the whole file, with one number or one string of fixed length; `otherwise` if
  // there is none with this name.
  double attribute(const std::string& name, double otherwise) const;
  std::string attribute(const std::string& name, const std::string& otherwise) const;

 private:
  enum class Holds { numbers, text };
  struct Values;
  int64_t object(const std::string& name) const;
  int64_t open(const std::string& name) const;
  Shape checked(const Values& values, const std::string& what, Holds holds) const;
  uint64_t stored_bytes(const Values& values, const std::string& what) const;
  Shape chunk_of(const Values& values) const;
  template <typename T>
  std::vector<T> read(const std::string& name, int64_t type) const;
  void read_rows(const std::string& name, int64_t first, int64_t count, int64_t type,
                 void* into) const;
  void read_into(const Values& values, const std::string& what, int64_t type, int64_t memory,
                 int64_t space, void* into) const;
  template <typename T>
  T one(const std::string& name, const std::vector<T>& values) const;
  [[noreturn]] void leads_out(const std::string& name) const;

  std::string path_;
  uint64_t size_ = 0;  // of the file, in bytes
  int64_t file_ = -1;
  int64_t links_ = -1;              // how links are followed: not into other files
  mutable bool led_out_ = false;    // a link to another file was met
  mutable uint64_t filled_in_ = 0;  // bytes returned that are not stored
};

}  // namespace crema
