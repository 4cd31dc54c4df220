// TarReader: walks through the members of a tar file by its headers: of the old format, ustar,
// GNU's (long names) and pax (names and sizes). No library is used: those for tar files read
// streams and report no offsets. No byte is trusted here.
//
// The format: for each member a header of 512 bytes, then its content, filled up to a multiple of
// 512. A header has a checksum. Members of the types L, K and x describe the next one. Two blocks
// of zeros end the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random_access_file.h"

namespace crema {

struct TarMember {
  enum class Kind { file, link, sparse, other };
  std::string name;
  Kind kind = Kind::file;
  uint64_t begin = 0, size = 0;  // of its content
};

// Whether a file begins like a tar file, or like a compressed one.
bool begins_as_tar(const RandomAccessFile& file);

class TarReader {
 public:
  // Error, naming the file, when it is no tar file, or is compressed.
  explicit TarReader(const RandomAccessFile& file);

  // The next member; false at the end. Error, naming the file and the position, if anything is
  // invalid. The content of every member is inside the file.
  bool next(TarMember& member);
  // The content of a small one.
  std::string content(const TarMember& member);

 private:
  template <typename... Parts>
  [[noreturn]] void damaged(uint64_t at, const Parts&... parts) const;
  [[noreturn]] void cut_off(uint64_t needed) const;
  // Valid until the next call.
  std::string_view bytes(uint64_t at, size_t count);
  void check_sum(uint64_t at, std::string_view header) const;
  void check_end(uint64_t zeros);
  std::string extension(const TarMember& member);
  uint64_t number(uint64_t at, std::string_view field) const;
  void read_pax(const TarMember& extended, TarMember& member, bool& named, bool& sized);

  const RandomAccessFile& file_;
  uint64_t at_ = 0;            // position of the next header
  std::vector<char> window_;   // last block read: often the next header is in it
  uint64_t window_begin_ = 0;  // its position in the file
};

}  // namespace crema
