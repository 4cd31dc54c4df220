// Reads safetensors files: a JSON header that names tensors, and their values behind it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/random_access_file.h"
#include "tensor/shape.h"

namespace crema {

class Safetensors {
 public:
  struct Entry {
    std::string dtype;  // F32, F16, BF16, F64, I64, or another type, which values() refuses
    Shape shape;
    uint64_t begin = 0, end = 0;  // bytes in the file
  };

  // Reads and checks the header. Error, which names the tensor, when offsets leave the file, overlap
  // or do not match shape and dtype.
  explicit Safetensors(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::map<std::string, Entry>& entries() const { return entries_; }
  // In row-major order.
  std::vector<float> values(const std::string& name) const;

 private:
  void check_offsets(uint64_t data) const;

  RandomAccessFile file_;
  std::map<std::string, Entry> entries_;
};

}  // namespace crema
