// WireCursor: a bounds-checked walk over protobuf's wire format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace crema {

class WireCursor {
 public:
  // The wire types.
  enum Kind { kVarint = 0, kFixed64 = 1, kBytes = 2, kGroupBegin = 3, kGroupEnd = 4, kFixed32 = 5 };
  struct Tag {
    uint32_t field;
    Kind kind;
  };

  // `file` must outlive the cursor. Offsets in errors count from `begin`, which is the byte `offset`
  // of the file; `kind` says what the file should be, such as ".caffemodel".
  WireCursor(const std::string& file, const char* kind, const void* begin, size_t size,
             uint64_t offset = 0);

  const std::string& file() const { return *file_; }
  bool done() const { return here_ == end_; }
  size_t left() const { return static_cast<size_t>(end_ - here_); }

  Tag tag();
  uint64_t varint();
  // A length-delimited part: a message, a text, packed numbers.
  WireCursor part();
  std::string_view rest() const { return {reinterpret_cast<const char*>(here_), left()}; }
  // Skips the value of an unwanted tag.
  void skip(Tag tag);

  // Appends the numbers after a tag, packed or single.
  void floats(Tag tag, std::vector<float>* out);
  void doubles(Tag tag, std::vector<float>* out);
  void whole_numbers(Tag tag, std::vector<int64_t>* out);

  // Error: "file: byte 1234: what; the file is damaged or no kind".
  [[noreturn]] void corrupt(std::string_view what) const;

 private:
  WireCursor(const WireCursor& outer, size_t size);
  const uint8_t* take(size_t size);
  void skip(Tag tag, int depth);
  template <typename Number>
  void numbers(Tag tag, Kind single, std::vector<float>* out);

  const std::string* file_;
  const char* kind_;
  const uint8_t *begin_, *here_, *end_;
  uint64_t offset_;
};

}  // namespace crema
