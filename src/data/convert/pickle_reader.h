// PickleReader: the machine that a pickle is a program for: it pushes values on a stack and joins
// them. For pickle.cpp only.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "data/convert/pickle.h"

namespace crema {

class PickleReader {
 public:
  using Kind = PickleValue::Kind;

  // Values point into `content`. Messages begin with `path`.
  PickleReader(const std::string& path, std::string_view content, std::deque<PickleValue>& values)
      : path_(path), content_(content), values_(values) {}

  const PickleValue* read();

 private:
  // Of a pickle of images each has a name and a label: this is far more than any has.
  static constexpr size_t kMaxValues = size_t{1} << 22;

  template <typename... Parts>
  [[noreturn]] void wrong(const Parts&... parts) const {
    fail(path_, ": byte ", start_, ": ", parts..., "; is it a pickle, and whole?");
  }

  void step(unsigned char code);
  bool push_number(unsigned char code);
  bool push_text(unsigned char code);
  bool join(unsigned char code);
  bool remember(unsigned char code);
  bool call(unsigned char code);

  std::string_view take(uint64_t count);
  uint64_t unsigned_of(int bytes);  // little-endian
  int64_t signed_of(std::string_view bytes) const;
  std::string_view line();

  PickleValue& make(Kind kind);
  void push_view(std::string_view text) { make(Kind::text).text = text; }
  PickleValue* pop();
  std::vector<const PickleValue*> pop_to_mark();
  // The value on top, which is to be extended.
  PickleValue& top(Kind kind, const char* name);
  void make_tuple(size_t count);

  const std::string& path_;
  std::string_view content_;
  std::deque<PickleValue>& values_;
  size_t at_ = 0, start_ = 0;  // the next byte, and that of the current instruction
  std::vector<PickleValue*> stack_;
  std::vector<size_t> marks_;
  std::map<uint64_t, PickleValue*> memo_;
};

}  // namespace crema
