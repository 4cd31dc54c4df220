#include "data/loader/image_cache.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/error.h"
#include "base/strings.h"
#include "device/host_limits.h"

namespace crema {
namespace {

// Checks the free space again after this many bytes.
constexpr int64_t kBetweenChecks = int64_t{16} << 20;

int open_temporary_file(const std::string& folder) {
  std::string path = folder + "/crema_images_XXXXXX";
  const int file = mkostemp(path.data(), O_CLOEXEC);
  require(file >= 0, "cache: DISK: no temporary file can be made in ", folder, ": ",
          std::strerror(errno), "; cache_folder names another folder");
  // It has no name: the file disappears however the program ends.
  unlink(path.c_str());
  return file;
}

std::string default_folder() {
  const char* const folder = std::getenv("TMPDIR");
  return folder && *folder ? folder : "/tmp";
}

int64_t free_in(int file) {
  struct statvfs system {};
  if (fstatvfs(file, &system) != 0) return 0;
  return static_cast<int64_t>(system.f_bavail) * static_cast<int64_t>(system.f_frsize);
}

}  // namespace

ImageCache::ImageCache(ImageCacheOptions options, Log& log)
    : options_(std::move(options)), log_(log) {
  if (options_.on_disk)
    file_ = open_temporary_file(options_.folder.empty() ? default_folder() : options_.folder);
}

ImageCache::~ImageCache() {
  if (file_ >= 0) close(file_);
}

std::string ImageCache::contents() const {
  const int64_t count = images();
  return cat(count, count == 1 ? " image of " : " images of ", options_.source, ", ",
             size_text(static_cast<size_t>(bytes_)), options_.on_disk ? " on disk" : " in memory");
}

int64_t ImageCache::images() const {
  const std::shared_lock<std::shared_mutex> lock(mutex_);
  return static_cast<int64_t>(entries_.size());
}

void ImageCache::begin_sample(int64_t epoch) {
  if (said_) return;
  // New loaders read the first sample of all, wherever they resume.
  if (epoch == epoch_ || images() <= 1) {
    epoch_ = epoch;
    return;
  }
  // Some of the first epoch's may still be in work on other threads.
  constexpr int64_t kInWork = 32;
  if ((epoch > epoch_ + 1 || ++later_ > kInWork) && !said_.exchange(true)) {
    log_.info(cat("The cache has ", contents(), "."));
  }
}

bool ImageCache::find(int64_t key, Record& record, std::string& rest) const {
  const Entry* found = nullptr;
  {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto at = entries_.find(key);
    if (at == entries_.end()) return false;
    found = &at->second;
  }
  record.channels = found->channels;
  record.height = found->height;
  record.width = found->width;
  rest = found->rest;
  if (!options_.on_disk) {
    show_pixels(found->pixels.data(), record);
    return true;
  }
  Image& image = record.image;
  const int64_t count = record.channels * record.height * record.width;
  image.channels = record.channels;
  image.height = record.height;
  image.width = record.width;
  image.pixels.resize(static_cast<size_t>(count));
  for (int64_t done = 0; done < count;) {
    const ssize_t part = pread(file_, image.pixels.data() + done, static_cast<size_t>(count - done),
                               found->at + done);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) return false;  // then it is decoded again
    done += part;
  }
  show_image(record);
  return true;
}

bool ImageCache::find(int64_t key, Image& image) const {
  Record record;
  std::string rest;
  if (!find(key, record, rest)) return false;
  to_image(record);
  image = std::move(record.image);
  return true;
}

// The caller has locked.
bool ImageCache::room_for(int64_t bytes) {
  const int64_t wanted = bytes_ + bytes;
  if (options_.limit > 0) return wanted <= options_.limit;
  if (wanted <= checked_) return true;
  const int64_t left = options_.on_disk
                           ? free_in(file_)
                           : static_cast<int64_t>(std::min<size_t>(free_host_memory(), INT64_MAX));
  checked_ = wanted + kBetweenChecks;
  return checked_ <= left;
}

void ImageCache::keep(int64_t key, const Image& image, std::string rest) {
  const auto count = static_cast<int64_t>(image.pixels.size());
  Entry entry{image.channels, image.height, image.width, std::move(rest), {}, 0};
  bool room = false;
  {
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    if (full_ || entries_.count(key) > 0) return;
    room = room_for(count);
    full_ = !room;
    if (room) {
      bytes_ += count;
      entry.at = end_;
      end_ += count;
    }
  }
  if (!room) {
    if (!said_.exchange(true))
      log_.info(
          cat("The cache is full: it has ", contents(), "; the others are decoded in each epoch."));
    return;
  }
  if (!options_.on_disk) {
    entry.pixels = image.pixels;
  } else if (!write(image.pixels, entry.at)) {
    const std::string reason = std::strerror(errno);
    bytes_ -= count;
    full_ = true;
    if (!said_.exchange(true))
      log_.warning(cat("The cache grows no more, as its file cannot be written: ", reason,
                       "; it has ", contents(), "."));
    return;
  }
  const std::unique_lock<std::shared_mutex> lock(mutex_);
  // If two threads have read the same record, the first one's entry stays.
  if (!entries_.emplace(key, std::move(entry)).second) bytes_ -= count;
}

bool ImageCache::write(const std::vector<uint8_t>& pixels, int64_t at) {
  for (size_t done = 0; done < pixels.size();) {
    const ssize_t part =
        pwrite(file_, pixels.data() + done, pixels.size() - done, at + static_cast<int64_t>(done));
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) return false;
    done += static_cast<size_t>(part);
  }
  return true;
}

}  // namespace crema
