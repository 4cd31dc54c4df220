#include "data/databases/tar/tar_reader.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/visible.h"

namespace crema {
namespace {

constexpr size_t kTarBlock = 512, kWindow = 4096, kChunk = 64 << 10;
constexpr uint64_t kLargestExtension = 1 << 20;  // a name longer than that is none

// Offsets of a header's fields.
struct TarField {
  size_t begin, count;
};
constexpr TarField kName{0, 100}, kSize{124, 12}, kSum{148, 8}, kTarMagic{257, 6},
    kPrefix{345, 155};
constexpr size_t kType = 156;

std::string_view field_of(std::string_view header, TarField field) {
  return header.substr(field.begin, field.count);
}

// Up to the first zero byte.
std::string_view text_in(std::string_view field) { return field.substr(0, field.find('\0')); }

bool all_zero(std::string_view bytes) {
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

// Octal digits between blanks; none for anything else.
std::optional<uint64_t> octal_in(std::string_view field) {
  field = text_in(field);
  while (!field.empty() && field.front() == ' ') field.remove_prefix(1);
  while (!field.empty() && field.back() == ' ') field.remove_suffix(1);
  uint64_t value = 0;
  const char* const end = field.data() + field.size();
  const auto [at, problem] = std::from_chars(field.data(), end, value, 8);
  if (field.empty() || at != end || problem != std::errc()) return {};
  return value;
}

struct TarSums {
  uint64_t right;
  int64_t of_signed;  // some old programs added signed bytes
};

// Sum of a header's bytes, with its own checksum counted as blanks.
TarSums sums_of(std::string_view header) {
  TarSums sums{};
  for (size_t i = 0; i < header.size(); ++i) {
    const char byte = i >= kSum.begin && i < kSum.begin + kSum.count ? ' ' : header[i];
    sums.right += static_cast<unsigned char>(byte);
    sums.of_signed += static_cast<signed char>(byte);
  }
  return sums;
}

bool sum_is_right(std::string_view header) {
  const std::optional<uint64_t> stored = octal_in(field_of(header, kSum));
  const TarSums sums = sums_of(header);
  return stored && (*stored == sums.right || static_cast<int64_t>(*stored) == sums.of_signed);
}

// The compression of a file that begins so; empty for none.
std::string compression_of(std::string_view bytes) {
  constexpr std::pair<const char*, std::string_view> kinds[] = {{"gzip", "\x1f\x8b"},
                                                                {"bzip2", "BZh"},
                                                                {"xz",
                                                                 "\xfd"
                                                                 "7zXZ"},
                                                                {"zstd", "\x28\xb5\x2f\xfd"}};
  for (const auto& [name, begin] : kinds) {
    if (starts_with(bytes, begin)) return name;
  }
  return "";
}

std::string first_block(const RandomAccessFile& file) {
  std::string block(kTarBlock, '\0');
  block.resize(file.read(0, block.data(), block.size()));
  return block;
}

}  // namespace

bool begins_as_tar(const RandomAccessFile& file) {
  const std::string block = first_block(file);
  return !compression_of(block).empty() || (block.size() == kTarBlock && sum_is_right(block));
}

TarReader::TarReader(const RandomAccessFile& file) : file_(file) {
  require(file.size() > 0, file.path(), ": is no tar file: it is empty");
  const std::string block = first_block(file);
  const std::string compression = compression_of(block);
  require(compression.empty(), file.path(), ": is compressed with ", compression,
          ", so its records cannot be read in any order; unpack it (the pictures in it are "
          "compressed anyway)");
  require(block.size() == kTarBlock && (all_zero(block) || sum_is_right(block)), file.path(),
          ": is no tar file: it does not begin with a header");
}

template <typename... Parts>
void TarReader::damaged(uint64_t at, const Parts&... parts) const {
  fail(file_.path(), ": the tar file is damaged at byte ", at, ": ", parts...);
}

void TarReader::cut_off(uint64_t needed) const {
  fail(file_.path(), ": the tar file is cut off: it ends at byte ", file_.size(),
       ", but what should be there reaches to byte ", needed, "; copy or download it again");
}

std::string_view TarReader::bytes(uint64_t at, size_t count) {
  if (at < window_begin_ || at + count > window_begin_ + window_.size()) {
    window_.resize(std::max(count, kWindow));
    window_.resize(file_.read(at, window_.data(), window_.size()));
    window_begin_ = at;
  }
  if (at + count > window_begin_ + window_.size()) cut_off(at + count);
  return {window_.data() + (at - window_begin_), count};
}

void TarReader::check_sum(uint64_t at, std::string_view header) const {
  if (sum_is_right(header)) return;
  damaged(at, "the bytes of the header add up to ", sums_of(header).right, ", but it says \"",
          visible(text_in(field_of(header, kSum))), "\" (octal)");
}

// Data after the end would never be read, so there must be none.
void TarReader::check_end(uint64_t zeros) {
  for (uint64_t at = zeros; at < file_.size();) {
    const size_t count = static_cast<size_t>(std::min<uint64_t>(kChunk, file_.size() - at));
    const std::string_view chunk = bytes(at, count);
    const size_t found = chunk.find_first_not_of('\0');
    if (found != std::string_view::npos) {
      fail(file_.path(), ": the tar file ends at byte ", zeros, ", but from byte ", at + found,
           " on there is more; were two files joined by cat? Give them as two shards, or join them "
           "by tar --concatenate");
    }
    at += count;
  }
}

uint64_t TarReader::number(uint64_t at, std::string_view field) const {
  const auto first = static_cast<unsigned char>(field[0]);
  std::optional<uint64_t> value;
  if (first == 0x80) {  // binary, big-endian, where eight gigabytes and more do not fit
    if (all_zero(field.substr(1, field.size() - 9))) {
      value = 0;
      for (const char byte : field.substr(field.size() - 8))
        value = (*value << 8) | static_cast<unsigned char>(byte);
    }
  } else {
    value = all_zero(field) ? 0 : octal_in(field);
  }
  if (!value) damaged(at, "\"", visible(text_in(field)), "\" is no size");
  return *value;
}

std::string TarReader::extension(const TarMember& member) {
  if (member.size > kLargestExtension)
    damaged(member.begin, "a name of ", member.size, " bytes is too long");
  return content(member);
}

std::string TarReader::content(const TarMember& member) {
  return std::string(bytes(member.begin, static_cast<size_t>(member.size)));
}

// Lines "LENGTH KEY=VALUE\n"; the length is that of the whole line.
void TarReader::read_pax(const TarMember& extended, TarMember& member, bool& named, bool& sized) {
  const std::string text = extension(extended);
  std::string_view rest = text;
  while (!rest.empty() && !all_zero(rest)) {
    const uint64_t at = extended.begin + (text.size() - rest.size());
    size_t length = 0;
    const auto [blank, problem] =
        std::from_chars(rest.data(), rest.data() + rest.size(), length, 10);
    const auto digits = static_cast<size_t>(blank - rest.data());
    const size_t equals = rest.find('=');
    if (problem != std::errc() || length > rest.size() || length < digits + 3 ||
        rest[digits] != ' ' || rest[length - 1] != '\n' || equals >= length - 1 || equals <= digits)
      damaged(at, "the pax header has no line LENGTH KEY=VALUE here");
    const std::string_view key = rest.substr(digits + 1, equals - digits - 1),
                           value = rest.substr(equals + 1, length - equals - 2);
    rest.remove_prefix(length);
    if (key == "path" || key == "GNU.sparse.name") {
      member.name = value;
      named = true;
    } else if (key == "size") {
      const char* const end = value.data() + value.size();
      const auto [stop, wrong] = std::from_chars(value.data(), end, member.size, 10);
      if (value.empty() || stop != end || wrong != std::errc())
        damaged(at, "\"", visible(value), "\" is no size");
      sized = true;
    }
    if (starts_with(key, "GNU.sparse.")) member.kind = TarMember::Kind::sparse;
  }
}

bool TarReader::next(TarMember& member) {
  using Kind = TarMember::Kind;
  member = {};
  bool extended = false, named = false, sized = false;
  while (true) {
    const uint64_t at = at_;
    if (at >= file_.size()) cut_off(at + kTarBlock);
    // The calls below replace the window.
    const std::string header(bytes(at, kTarBlock));
    if (all_zero(header)) {
      if (extended) damaged(at, "here a name ends the file; the member that has it is missing");
      check_end(at);
      return false;
    }
    check_sum(at, header);
    const char type = header[kType];
    TarMember found;
    found.begin = at + kTarBlock;
    found.size = sized ? member.size : number(at, field_of(header, kSize));
    // For these the size means nothing: no content follows.
    if (type >= '1' && type <= '6') found.size = 0;
    if (found.size > file_.size() - std::min(file_.size(), found.begin))
      cut_off(found.size > ~found.begin ? ~uint64_t{0} : found.begin + found.size);
    at_ = found.begin + (found.size + kTarBlock - 1) / kTarBlock * kTarBlock;

    if (type == 'L') {
      member.name = text_in(extension(found));
      extended = named = true;
      continue;
    }
    if (type == 'K' || type == 'g') continue;
    if (type == 'x' || type == 'X') {
      read_pax(found, member, named, sized);
      extended = true;
      continue;
    }
    member.begin = found.begin;
    member.size = found.size;
    if (!named) {
      member.name = text_in(field_of(header, kName));
      const std::string_view prefix = text_in(field_of(header, kPrefix));
      // Others keep times there.
      if (field_of(header, kTarMagic) == std::string_view("ustar\0", kTarMagic.count) &&
          !prefix.empty())
        member.name = cat(prefix, "/", member.name);
    }
    if (type == '1' || type == '2') {
      member.kind = Kind::link;
    } else if (type == 'S') {
      member.kind = Kind::sparse;
    } else if (type != '0' && type != '\0' && type != '7') {
      member.kind = Kind::other;
    }
    return true;
  }
}

}  // namespace crema
