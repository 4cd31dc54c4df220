// torch.save before PyTorch 1.6, and the files of its time, vgg16-397923af.pth among them: five
// pickles (a magic number, a version, the machine's sizes, the object, the keys of its storages in
// their order), and then the storages, each preceded by the number of its values.
#include <algorithm>

#include "base/error.h"
#include "base/random_access_file.h"
#include "base/visible.h"
#include "net/weights/tensor_file.h"
#include "net/weights/torch_archive.h"

namespace crema {
namespace {

using Kind = PickleValue::Kind;

// The pickles have names and sizes, no values: they end long before.
constexpr uint64_t kMaxPickles = uint64_t{1} << 26;
constexpr int64_t kVersion = 1001;

class TorchLegacy : public TorchArchive {
 public:
  explicit TorchLegacy(const std::string& path) : file_(path) {
    content_.resize(std::min(file_.size(), kMaxPickles));
    content_.resize(file_.read(0, content_.data(), content_.size()));
    size_t at = read_pickle(path, kLegacyMagic.size());
    require(root_->kind == Kind::integer && root_->integer == kVersion, path,
            ": its version is not ", kVersion, kSafetensorsHint);
    at = read_pickle(path, at);
    require(is_little_endian(*root_), path, ": its numbers have their highest byte first",
            kSafetensorsHint);
    at = read_pickle(path, at);
    const PickleValue* object = root_;
    std::map<std::string, uint64_t> widths;
    for (const PickleValue& value : values_) {
      if (value.kind != Kind::reference) continue;
      const TorchStorage storage = storage_of(value, path + ": ");
      const uint64_t width = dtype_width(storage.dtype);
      const bool same = widths.emplace(storage.key, width).first->second == width;
      require(same, path, ": storage ", visible(storage.key), " has two types", kSafetensorsHint);
    }
    at = read_pickle(path, at);
    require(root_->kind == Kind::list, path, ": expected a list of storages behind the tensors");
    find_storages(widths, at);
    root_ = object;
  }

  void check(const TorchStorage& storage, const std::string& what) const override {
    const auto found = places_.find(storage.key);
    require(found != places_.end(), what, "the file has no storage ", visible(storage.key));
    require(found->second.count == storage.count, what, "its storage ", visible(storage.key),
            " has ", found->second.count, " values; expected ", storage.count);
  }

  std::vector<char> read(const TorchStorage& storage, const std::string& what) const override {
    const Place& place = places_.at(storage.key);
    std::vector<char> bytes(place.count * dtype_width(storage.dtype));
    require(file_.read(place.begin, bytes.data(), bytes.size()) == bytes.size(), what,
            "the file became shorter");
    return bytes;
  }

 private:
  struct Place {
    uint64_t begin = 0, count = 0;
  };

  static bool is_little_endian(const PickleValue& machine) {
    if (machine.kind != Kind::dict) return false;
    for (size_t i = 0; i + 1 < machine.items.size(); i += 2) {
      if (machine.items[i]->text == "little_endian") return machine.items[i + 1]->integer == 1;
    }
    return false;
  }

  void find_storages(const std::map<std::string, uint64_t>& widths, uint64_t at) {
    for (const PickleValue* key : root_->items) {
      const std::string name(key->text);
      const std::string what = cat(path(), ": storage ", visible(name), ": ");
      const auto width = widths.find(name);
      require(width != widths.end(), what, "no tensor has it");
      uint64_t count = 0;
      const bool there = file_.read(at, &count, sizeof(count)) == sizeof(count);
      at += sizeof(count);
      require(there && count <= (file_.size() - at) / width->second, what, "has ", count,
              " values at byte ", at, ", but the file has ", file_.size(),
              " bytes; was it downloaded whole?");
      places_[name] = {at, count};
      at += count * width->second;
    }
  }

  const std::string& path() const { return file_.path(); }

  RandomAccessFile file_;
  std::map<std::string, Place> places_;
};

}  // namespace

std::unique_ptr<TorchArchive> open_torch_legacy(const std::string& path) {
  return std::make_unique<TorchLegacy>(path);
}

}  // namespace crema
