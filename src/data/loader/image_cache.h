// ImageCache: decoded images for later epochs, in memory or in a temporary file: as many as there
// is room for, starting with the first ones.
#pragma once

#include <atomic>
#include <shared_mutex>
#include <unordered_map>

#include "base/log.h"
#include "data/images/record.h"

namespace crema {

struct ImageCacheOptions {
  bool on_disk = false;  // else in memory
  int64_t limit = 0;     // bytes; 0: as long as at least the same amount stays free
  std::string folder;    // folder of the temporary file; "": $TMPDIR, or /tmp
  std::string source;    // source of the images, for the log
};

// All functions are thread-safe.
class ImageCache {
 public:
  // Error when there can be no temporary file.
  ImageCache(ImageCacheOptions options, Log& log);
  ~ImageCache();
  ImageCache(const ImageCache&) = delete;
  ImageCache& operator=(const ImageCache&) = delete;

  // A sample of this epoch is next. After the first epoch the log reports the cache's contents.
  void begin_sample(int64_t epoch);
  // Whether the image with this key is cached. Then the record shows it, whole, with its `rest`;
  // for images in memory it shows the cache's own pixels, as long as the cache lives.
  bool find(int64_t key, Record& record, std::string& rest) const;
  bool find(int64_t key, Image& image) const;
  // Whether there may be room: otherwise an image need not be decoded whole.
  bool grows() const { return !full_; }
  // Keeps an image, if there is room.
  void keep(int64_t key, const Image& image, std::string rest = {});

  // The cache's contents, for the log.
  int64_t images() const;
  int64_t bytes() const { return bytes_; }

 private:
  struct Entry {
    int64_t channels = 0, height = 0, width = 0;
    std::string rest;
    std::vector<uint8_t> pixels;  // in memory
    int64_t at = 0;               // in the file
  };

  bool room_for(int64_t bytes);
  bool write(const std::vector<uint8_t>& pixels, int64_t at);
  std::string contents() const;

  const ImageCacheOptions options_;
  Log& log_;
  int file_ = -1;
  mutable std::shared_mutex mutex_;
  // None is ever changed or removed, so that pixels may be read without the lock.
  std::unordered_map<int64_t, Entry> entries_;
  int64_t end_ = 0;      // of the file
  int64_t checked_ = 0;  // bytes up to which there was room at the last check
  std::atomic<int64_t> bytes_ = 0;
  std::atomic<bool> full_ = false, said_ = false;
  std::atomic<int64_t> epoch_ = 0;  // the first one
  std::atomic<int64_t> later_ = 0;  // samples made after it
};

}  // namespace crema
