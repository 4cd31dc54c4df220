#include "tools/runs/content_hash.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "base/strings.h"
#include "data/loader/on_threads.h"
#include "solver/events/checksum.h"

namespace crema {
namespace {

// Blocks of a hard disk's file take about 10 ms each.
constexpr int64_t kMostBytes = int64_t{256} << 20, kBlock = int64_t{64} << 10, kBlocks = 512;

// A regular file, open for reading.
class OpenFile {
 public:
  // O_NONBLOCK: a pipe that took the file's place must not block.
  explicit OpenFile(const std::string& path)
      : path_(path), descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (descriptor_ < 0) fail(path, ": cannot read: ", std::strerror(errno));
  }
  ~OpenFile() { close(descriptor_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  void read(int64_t offset, char* to, int64_t count) const {
    while (count > 0) {
      const ssize_t got = pread(descriptor_, to, static_cast<size_t>(count), offset);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(path_, ": cannot read: ", std::strerror(errno));
      require(got > 0, path_, ": became shorter while it was read");
      to += got;
      offset += got;
      count -= got;
    }
  }

 private:
  const std::string& path_;
  int descriptor_;
};

int64_t size_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) fail(path, ": cannot read: ", std::strerror(errno));
  require(S_ISREG(status.st_mode), path, ": is not a regular file");
  return status.st_size;
}

// What is read at once.
struct Piece {
  size_t file = 0;
  int64_t offset = 0, bytes = 0;
};

std::vector<Piece> pieces_of(const std::vector<int64_t>& sizes, int64_t all) {
  constexpr int64_t kPiece = int64_t{1} << 20;
  // Block k begins at k * step, and the last one ends with the last file.
  const double step = static_cast<double>(all - kBlock) / (kBlocks - 1);
  std::vector<Piece> pieces;
  int64_t start = 0, block = 0;
  for (size_t i = 0; i < sizes.size(); start += sizes[i++]) {
    if (all <= kMostBytes) {
      for (int64_t at = 0; at < sizes[i]; at += kPiece)
        pieces.push_back({i, at, std::min(kPiece, sizes[i] - at)});
      continue;
    }
    for (; block < kBlocks; ++block) {
      const int64_t at = std::llround(static_cast<double>(block) * step) - start;
      if (at >= sizes[i]) break;
      pieces.push_back({i, at, std::min(kBlock, sizes[i] - at)});
    }
  }
  return pieces;
}

uint64_t hash_of(const std::string& path, const Piece& piece) {
  const OpenFile file(path);
  std::array<char, kBlock> buffer;
  Checksum hash;
  for (int64_t done = 0; done < piece.bytes;) {
    const int64_t count = std::min(kBlock, piece.bytes - done);
    file.read(piece.offset + done, buffer.data(), count);
    hash.add(buffer.data(), static_cast<size_t>(count));
    done += count;
  }
  return hash.value();
}

}  // namespace

ContentHash hash_of_files(const std::string& names, const std::vector<std::string>& files) {
  ContentHash content;
  try {
    std::vector<int64_t> sizes(files.size());
    constexpr int64_t kAtOnce = 64;
    on_threads(static_cast<int64_t>(files.size()), kAtOnce,
               [&](int64_t i) { sizes[i] = size_of(files[i]); });
    content.bytes = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
    const std::vector<Piece> pieces = pieces_of(sizes, content.bytes);
    std::vector<uint64_t> hashes(pieces.size());
    on_threads(static_cast<int64_t>(pieces.size()), 4,
               [&](int64_t i) { hashes[i] = hash_of(files[pieces[i].file], pieces[i]); });
    if (content.bytes > kMostBytes)
      content.sampled = cat(kBlocks, " blocks of ", size_text(kBlock));
    content.hash = hex_of(Checksum()
                              .add(names.data(), names.size())
                              .add(sizes.data(), sizes.size() * sizeof(int64_t))
                              .add(hashes.data(), hashes.size() * sizeof(uint64_t))
                              .value());
  } catch (const Error& error) {
    content.problem = error.what();
  }
  return content;
}

}  // namespace crema
