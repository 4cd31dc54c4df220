#include "data/images/image_header.h"

#include <algorithm>

namespace crema {
namespace {

// Numbers in a file; 0 beyond its end.
class Bytes {
 public:
  explicit Bytes(std::string_view file, bool little = false) : file_(file), little_(little) {}

  size_t size() const { return file_.size(); }
  int64_t byte(size_t at) const {
    return at < file_.size() ? static_cast<unsigned char>(file_[at]) : 0;
  }
  int64_t number(size_t at, int bytes) const {
    int64_t value = 0;
    for (int i = 0; i < bytes; ++i)
      value = value << 8 | byte(at + static_cast<size_t>(little_ ? bytes - 1 - i : i));
    return value;
  }
  bool has(size_t at, std::string_view what) const {
    return at <= file_.size() && file_.substr(at, what.size()) == what;
  }

 private:
  std::string_view file_;
  bool little_;
};

using Header = std::optional<ImageHeader>;

// The value of a tag in the first directory of a TIFF file, or of EXIF data, which have that form.
std::optional<int64_t> tiff_value(std::string_view file, int64_t wanted) {
  const Bytes bytes(file, !file.empty() && file[0] == 'I');
  const auto entries = static_cast<size_t>(bytes.number(4, 4));
  for (int64_t i = 0; i < bytes.number(entries, 2); ++i) {
    const size_t entry = entries + 2 + static_cast<size_t>(i) * 12;
    if (entry + 12 > file.size()) return {};
    if (bytes.number(entry, 2) != wanted) continue;
    const int width = bytes.number(entry + 2, 2) == 3 ? 2 : 4;  // bytes per value
    const bool elsewhere = bytes.number(entry + 4, 4) * width > 4;
    const size_t at = elsewhere ? static_cast<size_t>(bytes.number(entry + 8, 4)) : entry + 8;
    return bytes.number(at, width);
  }
  return {};
}

int orientation_of(std::string_view exif) {
  const int64_t orientation = tiff_value(exif, 0x112).value_or(1);
  return orientation >= 1 && orientation <= 8 ? static_cast<int>(orientation) : 1;
}

// For the frame whose segment is here: 4:4:4, 4:2:2, 4:2:0 or 4:4:0, or grey, but not RGB, which
// only the names of its components show.
bool is_plain_frame(const Bytes& bytes, size_t at) {
  const int64_t components = bytes.byte(at + 7);
  const auto name = [&](size_t i) { return bytes.byte(at + 8 + 3 * i); };
  const auto sampling = [&](size_t i) { return bytes.byte(at + 9 + 3 * i); };
  if (bytes.byte(at + 2) != 8) return false;
  if (components == 1) return sampling(0) == 0x11;
  const int64_t first = sampling(0);
  return components == 3 && (first == 0x11 || first == 0x21 || first == 0x22 || first == 0x12) &&
         sampling(1) == 0x11 && sampling(2) == 0x11 &&
         !(name(0) == 'R' && name(1) == 'G' && name(2) == 'B');
}

// Walks from segment to segment: a thumbnail is inside one, so its end is not mistaken for that of
// the image. Data after the end does not matter.
Header of_jpeg(std::string_view file) {
  const Bytes bytes(file);
  Header header;
  int orientation = 1, scans = 0;
  bool plain = false, not_ycc = false;
  size_t at = 2;
  // To the next marker: skips the data of a scan and, as decoders do, garbage.
  while ((at = file.find('\xFF', at)) != std::string_view::npos) {
    const int64_t kind = bytes.byte(++at);
    if (kind == 0xFF) continue;  // any number of them may precede a marker
    ++at;
    if (kind == 0xD9) break;
    // A data byte of 255, and markers without a segment.
    if (kind < 0xC0 || (kind >= 0xD0 && kind <= 0xD8)) continue;
    const bool frame = kind <= 0xCF && kind != 0xC4 && kind != 0xC8 && kind != 0xCC;
    if (frame && !header) {
      header = {bytes.number(at + 3, 2), bytes.number(at + 5, 2),
                static_cast<int>(bytes.byte(at + 2)), static_cast<int>(bytes.byte(at + 7))};
      plain = kind == 0xC0 && is_plain_frame(bytes, at);
    }
    if (kind == 0xDA) {
      ++scans;
      plain = plain && bytes.byte(at + 2) == header->channels;
    }
    // Its last byte gives the meaning of the three components; 1 is YCbCr.
    if (kind == 0xEE && bytes.has(at + 2, "Adobe") && bytes.byte(at + 13) != 1) not_ycc = true;
    const auto length = static_cast<size_t>(std::max<int64_t>(2, bytes.number(at, 2)));
    if (kind == 0xE1 && bytes.has(at + 2, std::string_view("Exif\0\0", 6)) && length > 8)
      orientation = orientation_of(file.substr(at + 8, length - 8));
    at += length;
  }
  if (header) {
    header->cut = at == std::string_view::npos;
    header->orientation = orientation;
    header->inks = header->channels == 4;
    header->baseline = plain && scans == 1 && !header->cut && header->height > 0 &&
                       header->width > 0 && !(not_ycc && header->channels == 3);
  }
  return header;
}

Header of_png(std::string_view file) {
  const Bytes bytes(file);
  const int64_t kind = bytes.byte(25);
  ImageHeader header{bytes.number(20, 4), bytes.number(16, 4), static_cast<int>(bytes.byte(24)),
                     kind == 0   ? 1
                     : kind == 4 ? 2
                     : kind == 6 ? 4
                                 : 3};
  // Chunks: length, name, content, checksum.
  for (size_t at = 8; at + 12 <= file.size();) {
    const auto length = static_cast<size_t>(bytes.number(at, 4));
    if (bytes.has(at + 4, "eXIf")) {
      header.orientation = orientation_of(file.substr(at + 8, length));
      break;
    }
    at += 12 + length;
  }
  return header;
}

Header of_bmp(std::string_view file) {
  const Bytes bytes(file, true);
  if (bytes.number(14, 4) == 12) return ImageHeader{bytes.number(20, 2), bytes.number(18, 2)};
  // Rows stored from the top have a negative height.
  const auto height = static_cast<int32_t>(bytes.number(22, 4));
  return ImageHeader{std::abs(int64_t{height}), bytes.number(18, 4)};
}

Header of_webp(std::string_view file) {
  const Bytes bytes(file, true);
  if (bytes.has(12, "VP8X")) return ImageHeader{1 + bytes.number(27, 3), 1 + bytes.number(24, 3)};
  if (bytes.has(12, "VP8L")) {
    const int64_t sizes = bytes.number(21, 4);
    return ImageHeader{1 + (sizes >> 14 & 0x3FFF), 1 + (sizes & 0x3FFF)};
  }
  if (bytes.has(12, "VP8 "))
    return ImageHeader{bytes.number(28, 2) & 0x3FFF, bytes.number(26, 2) & 0x3FFF};
  return {};
}

// The first image of the file.
Header of_tiff(std::string_view file) {
  const auto value = [&](int64_t tag, int64_t otherwise) {
    return tiff_value(file, tag).value_or(otherwise);
  };
  ImageHeader header{value(257, 0), value(256, 0), static_cast<int>(value(258, 1)),
                     static_cast<int>(value(277, 1))};
  header.inks = value(262, 0) == 5;
  return header;
}

// The words of a text header, skipping comments.
Header of_pnm(std::string_view file) {
  int64_t numbers[3] = {0, 0, 255};
  const char kind = file[1];
  const int wanted = kind == '1' || kind == '4' || kind == 'F' || kind == 'f' ? 2 : 3;
  size_t at = 2;
  for (int i = 0; i < wanted; ++i) {
    while (at < file.size() && (file[at] == '#' || std::string_view(" \t\r\n").find(file[at]) !=
                                                       std::string_view::npos)) {
      at = file[at] == '#' ? std::min(file.size(), file.find('\n', at)) : at + 1;
    }
    const size_t first = at;
    for (numbers[i] = 0; at < file.size() && file[at] >= '0' && file[at] <= '9'; ++at)
      numbers[i] = std::min<int64_t>(numbers[i] * 10 + (file[at] - '0'), INT32_MAX);
    if (at == first) return {};
  }
  return ImageHeader{numbers[1], numbers[0], wanted == 3 && numbers[2] > 255 ? 16 : 8};
}

// SIZ, the first segment of a JPEG 2000 code stream.
Header of_jpeg2000(std::string_view file, size_t stream) {
  const Bytes bytes(file);
  if (!bytes.has(stream, "\xFF\x4F\xFF\x51")) return {};
  const auto extent = [&](size_t at) {
    return bytes.number(stream + at, 4) - bytes.number(stream + at + 8, 4);
  };
  return ImageHeader{extent(12), extent(8), static_cast<int>(bytes.byte(stream + 42) & 0x7F) + 1};
}

Header of_any(std::string_view file) {
  const Bytes bytes(file);
  if (bytes.has(0, "\xFF\xD8\xFF")) return of_jpeg(file);
  if (bytes.has(0, "\x89PNG\r\n\x1A\n")) return of_png(file);
  if (bytes.has(0, "BM")) return of_bmp(file);
  if (bytes.has(0, "RIFF") && bytes.has(8, "WEBP")) return of_webp(file);
  if (bytes.has(0, std::string_view("II*\0", 4)) || bytes.has(0, std::string_view("MM\0*", 4)))
    return of_tiff(file);
  if (bytes.has(0, "\xFF\x4F\xFF\x51")) return of_jpeg2000(file, 0);
  if (bytes.has(4, "jP  ")) {
    const size_t box = file.find("jp2c");
    return box == std::string_view::npos ? Header() : of_jpeg2000(file, box + 4);
  }
  if (bytes.has(0, "\x59\xA6\x6A\x95")) return ImageHeader{bytes.number(8, 4), bytes.number(4, 4)};
  const bool text = bytes.has(0, "P") && file.size() > 2 &&
                    std::string_view("123456Ff").find(file[1]) != std::string_view::npos;
  return text ? of_pnm(file) : Header();
}

}  // namespace

std::optional<ImageHeader> read_image_header(std::string_view file) {
  const Header header = of_any(file);
  return header && header->height > 0 && header->width > 0 ? header : Header();
}

}  // namespace crema
