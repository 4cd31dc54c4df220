// NpyWriter: writes a NumPy file for numpy.load(): version 1.0, an array of float32 whose first
// axis counts the rows.
#pragma once

#include <memory>
#include <string>

#include "base/files.h"
#include "tensor/shape.h"

namespace crema {

// Appends .npy if it is missing, as numpy.save() does.
std::string name_of_npy(const std::string& path);

class NpyWriter {
 public:
  // Error when something has that name, unless it is a NumPy file to be replaced.
  NpyWriter(const std::string& path, bool overwrite);
  NpyWriter(const NpyWriter&) = delete;
  NpyWriter& operator=(const NpyWriter&) = delete;

  // Appends rows; the first axis of `shape` counts them, the others are equal in all calls.
  void put(const Shape& shape, const float* values);
  // As those of DatabaseWriter: complete() writes everything to disk, finish() gives it its name.
  void complete();
  void finish();
  int64_t count() const { return rows_; }

 private:
  std::string header(int64_t rows) const;

  const std::string path_;
  const bool overwrite_;
  std::unique_ptr<AtomicFile> file_;
  Shape shape_;  // shape of the first rows
  int64_t rows_ = 0;
  bool complete_ = false;
};

}  // namespace crema
