// A file of named tensors, as other programs keep weights: safetensors, or what torch.save wrote.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tensor/shape.h"

namespace crema {

class TensorFile {
 public:
  struct Entry {
    std::string dtype;  // as safetensors names it: F32, F16, BF16, F64, I64, ...
    Shape shape;
  };

  virtual ~TensorFile() = default;
  virtual const std::string& path() const = 0;
  // In row-major order. Error when the dtype is none of F32, F16, BF16, F64 and I64.
  virtual std::vector<float> values(const std::string& name) const = 0;

  const std::map<std::string, Entry>& entries() const { return entries_; }

 protected:
  std::map<std::string, Entry> entries_;
};

// By the beginning of the file, whatever its suffix.
std::unique_ptr<TensorFile> open_tensor_file(const std::string& path);

// Bytes per value; 0 for an unknown dtype.
uint64_t dtype_width(const std::string& dtype);

// Error, which begins with `what`, when the dtype is none of those above.
std::vector<float> floats_of(const std::vector<char>& bytes, const std::string& dtype,
                             const std::string& what);

}  // namespace crema
