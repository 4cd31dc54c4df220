// The format of torch.save: a pickle, and storages, which are arrays of bytes that the pickle
// refers to by keys. Since PyTorch 1.6 these are entries of a zip file; before, they followed one
// another.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/pickle_reader.h"

namespace crema {

// How such a file begins.
constexpr std::string_view kZipMagic = "PK\x03\x04";
// A pickle of the number 0x1950a86a20f9469cfc6c.
constexpr std::string_view kLegacyMagic =
    "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";

// The pickle's description of a storage.
struct TorchStorage {
  std::string key, dtype;  // "0", "F32"
  uint64_t count = 0;      // of values
};

// Error, which begins with `what`, if the value does not refer to a storage with readable values.
TorchStorage storage_of(const PickleValue& reference, const std::string& what);

class TorchArchive {
 public:
  virtual ~TorchArchive() = default;

  const PickleValue& root() const { return *root_; }
  // Error, which begins with `what`, if there is no such storage or it has a different size.
  virtual void check(const TorchStorage& storage, const std::string& what) const = 0;
  // The bytes of a storage that was checked.
  virtual std::vector<char> read(const TorchStorage& storage, const std::string& what) const = 0;

 protected:
  // Reads the pickle that `content_` has from `at` on; returns where it ends. Functions that no
  // state dict needs are an Error.
  size_t read_pickle(const std::string& name, size_t at);

  std::string content_;
  std::deque<PickleValue> values_;  // they point to each other and into content_
  const PickleValue* root_ = nullptr;
};

std::unique_ptr<TorchArchive> open_torch_zip(const std::string& path);
std::unique_ptr<TorchArchive> open_torch_legacy(const std::string& path);

// How to get a file that can be read.
constexpr const char* kSafetensorsHint =
    "; if you trust the file, load it in Python and save the tensors alone: "
    "safetensors.torch.save_file(model.state_dict(), \"weights.safetensors\")";

}  // namespace crema
