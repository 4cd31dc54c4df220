// TarSource: the pictures and labels that data/databases/tar/tar_index.h finds, as encoded Datums.
#include <deque>
#include <mutex>

#include "base/error.h"
#include "base/random_access_file.h"
#include "data/databases/source.h"
#include "data/databases/tar/tar_index.h"
#include "data/databases/tar/tar_shards.h"
#include "data/loader/on_threads.h"

namespace crema {
namespace {

// A data set may have more files than a process may have open.
constexpr size_t kMostOpen = 256;

class TarSource : public Source {
 public:
  explicit TarSource(const std::string& path)
      : Source(path), shards_(tar_shards(path)), open_(shards_.size()) {
    std::vector<TarIndex> parts(shards_.size());
    on_threads(static_cast<int64_t>(shards_.size()), 1, [&](int64_t i) {
      parts[static_cast<size_t>(i)] = index_tar(shards_[static_cast<size_t>(i)].path);
    });
    for (size_t i = 0; i < parts.size(); ++i) {
      bytes_.push_back(parts[i].bytes);
      index_.append(std::move(parts[i]), static_cast<uint32_t>(i));
    }
    require(!index_.records.empty(), path,
            ": has no record: an image and its label next to it, 0001.jpg and 0001.cls");
  }

  int64_t size() const override { return static_cast<int64_t>(index_.records.size()); }

  // Shards may start their numbering again.
  std::string key(int64_t index) const override {
    const TarRecord& record = index_.records[index];
    const std::string& shard = shards_[record.shard].name;
    std::string key = index_.keys.substr(record.key, record.key_size);
    return shard.empty() ? key : cat(shard, "/", key);
  }

  std::optional<int64_t> class_of(int64_t index) const override {
    const TarRecord& record = index_.records[index];
    if (record.several > 0) return {};
    return record.label;
  }

  void read(int64_t index, google::protobuf::Message& message) const override {
    auto* const datum = dynamic_cast<Datum*>(&message);
    require(datum != nullptr, "tar files hold images and their labels, no ",
            message.GetDescriptor()->name());
    const TarRecord& record = index_.records[index];
    datum->Clear();
    std::string& image = *datum->mutable_data();
    image.resize(record.image_size);
    const std::shared_ptr<const RandomAccessFile> file = shard(record.shard);
    const size_t got = file->read(record.image, image.data(), image.size());
    if (got != image.size()) {
      fail(file->path(), " ends at byte ", record.image + got,
           ", inside of the image: it was cut off after it had been opened");
    }
    datum->set_encoded(true);
    if (record.several == 0) {
      datum->set_label(record.label);
    } else {
      const auto first = index_.labels.begin() + static_cast<ptrdiff_t>(record.of_several);
      datum->mutable_labels()->Assign(first, first + record.several);
    }
  }

 private:
  std::shared_ptr<const RandomAccessFile> shard(uint32_t number) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::shared_ptr<const RandomAccessFile>& file = open_[number];
    if (file) return file;
    if (opened_.size() == kMostOpen) {
      open_[opened_.front()].reset();
      opened_.pop_front();
    }
    auto opened = std::make_shared<const RandomAccessFile>(shards_[number].path);
    require(opened->size() == bytes_[number], opened->path(), " has ", opened->size(),
            " bytes, but had ", bytes_[number], " when it was opened first: it was replaced");
    file = std::move(opened);
    opened_.push_back(number);
    return file;
  }

  const std::vector<TarShard> shards_;
  std::vector<uint64_t> bytes_;  // of each
  TarIndex index_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const RandomAccessFile>> open_;  // null: closed
  mutable std::deque<uint32_t> opened_;                                // the oldest first
};

}  // namespace

std::unique_ptr<Source> open_tar(const std::string& path) {
  return std::make_unique<TarSource>(path);
}

}  // namespace crema
