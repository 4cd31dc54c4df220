// Reads a state dict that torch.save wrote: alone, or in a checkpoint as "state_dict",
// "model_state_dict" or "model". No code in the file is executed.
#pragma once

#include "net/weights/tensor_file.h"
#include "net/weights/torch_archive.h"

namespace crema {

class TorchFile : public TensorFile {
 public:
  // Reads and checks the file's description of tensors. Error for anything other than tensors,
  // numbers and texts, and for a tensor outside its storage.
  explicit TorchFile(const std::string& path);

  const std::string& path() const override { return path_; }
  std::vector<float> values(const std::string& name) const override;

 private:
  struct Place {
    TorchStorage storage;
    uint64_t offset = 0;
    std::vector<uint64_t> strides;  // in values
  };

  void add(const std::string& name, const PickleValue& tensor);
  std::string what(const std::string& name) const;

  std::string path_;
  std::unique_ptr<TorchArchive> archive_;
  std::map<std::string, Place> places_;
};

}  // namespace crema
