// Reads safetensors files: a JSON header that names tensors, followed by their values.
#pragma once

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

}  // namespace crema
