// torch.save since PyTorch 1.6: NAME/data.pkl, NAME/byteorder, and a storage an entry, NAME/data/KEY.
#include "base/error.h"
#include "base/strings.h"
#include "base/visible.h"
#include "net/weights/tensor_file.h"
#include "net/weights/torch_archive.h"
#include "net/weights/zip_file.h"

namespace crema {
namespace {

// Pickles have names and sizes, no values: this is far more than any net's.
constexpr uint64_t kMaxPickle = uint64_t{1} << 28;

class TorchZip : public TorchArchive {
 public:
  explicit TorchZip(const std::string& path) : zip_(path) {
    const std::string pickle = "data.pkl";
    for (const std::string& name : zip_.names()) {
      const size_t slash = name.find('/');
      if (slash == std::string::npos || name.substr(slash + 1) != pickle) continue;
      require(folder_.empty(), path, ": has several data.pkl", kSafetensorsHint);
      folder_ = name.substr(0, slash + 1);
    }
    require(!folder_.empty(), path,
            ": a zip file without a data.pkl; expected what torch.save writes");
    const std::string order = folder_ + "byteorder";
    if (zip_.size(order)) {
      const std::vector<char> bytes = zip_.read(order, kMaxPickle);
      require(std::string(bytes.begin(), bytes.end()) == "little", path,
              ": its numbers have their highest byte first", kSafetensorsHint);
    }
    const std::vector<char> bytes = zip_.read(folder_ + pickle, kMaxPickle);
    content_.assign(bytes.begin(), bytes.end());
    read_pickle(cat(path, ": ", visible(folder_), pickle), 0);
  }

  void check(const TorchStorage& storage, const std::string& what) const override {
    const std::string name = entry(storage);
    const std::optional<uint64_t> size = zip_.size(name);
    require(size.has_value(), what, "the file has no ", visible(name));
    const uint64_t expected = storage.count * dtype_width(storage.dtype);
    require(*size == expected, what, visible(name), " has ", *size, " bytes, but ", storage.count,
            " values of ", storage.dtype, " take ", expected);
  }

  std::vector<char> read(const TorchStorage& storage, const std::string& /*what*/) const override {
    return zip_.read(entry(storage), storage.count * dtype_width(storage.dtype));
  }

 private:
  std::string entry(const TorchStorage& storage) const { return folder_ + "data/" + storage.key; }

  ZipFile zip_;
  std::string folder_;
};

}  // namespace

std::unique_ptr<TorchArchive> open_torch_zip(const std::string& path) {
  return std::make_unique<TorchZip>(path);
}

}  // namespace crema
