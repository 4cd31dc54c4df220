// Safetensors files: a JSON header that names tensors, followed by their values.
#pragma once

#include <functional>

#include "base/random_access_file.h"
#include "net/weights/tensor_file.h"

namespace crema {

class Safetensors : public TensorFile {
 public:
  // Reads and checks the header. Error, which names the tensor, when offsets leave the file, overlap
  // or do not match shape and dtype.
  explicit Safetensors(const std::string& path);

  const std::string& path() const override { return file_.path(); }
  std::vector<float> values(const std::string& name) const override;

 private:
  struct Range {
    uint64_t begin = 0, end = 0;  // bytes in the file
  };
  void check_offsets(uint64_t data) const;

  RandomAccessFile file_;
  std::map<std::string, Range> ranges_;
};

// A tensor to write; bytes(): its values, little-endian and row-major.
struct SafetensorsEntry {
  std::string name;
  TensorFile::Entry entry;
  std::function<std::string()> bytes;
};

// Writes a file of these tensors atomically, one after the other, so that one is in memory at a time.
// Error if a name is there twice or is not UTF-8.
void write_safetensors(const std::string& path, std::vector<SafetensorsEntry> tensors);

}  // namespace crema
