// Reads Python's pickles, in the protocols 2 to 5 as Python 2 and 3 write them, into a tree of values:
// numbers, texts, lists, tuples and dictionaries. Nothing in a pickle is executed: a call becomes a
// value that names the function and its arguments.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace crema {

struct PickleValue {
  enum class Kind { none, integer, real, text, list, tuple, dict, function, call, reference };
  Kind kind = Kind::none;
  int64_t integer = 0;
  double real = 0;
  std::string_view module, text;  // name of a function; `text` also bytes
  // For a list or tuple its elements; for a dict alternating keys and values; for a call the
  // function and the tuple of its arguments, then alternating keys and values that were set in its
  // result; for a reference to something outside the pickle its identifier.
  std::vector<const PickleValue*> items{};
  const PickleValue* state = nullptr;  // items set in a call's result afterwards
};

// The machine that a pickle is a program for: it pushes values on a stack and joins them.
class PickleReader {
 public:
  using Kind = PickleValue::Kind;
  // Gets each function that the pickle names, and where; may throw to refuse it.
  using OnFunction = std::function<void(const PickleValue& function, size_t byte)>;

  // Values point into `content` and to each other. The pickle begins at byte `at`. Messages begin with
  // `path`.
  PickleReader(const std::string& path, std::string_view content, std::deque<PickleValue>& values,
               OnFunction on_function = {}, size_t at = 0)
      : path_(path),
        content_(content),
        values_(values),
        on_function_(std::move(on_function)),
        at_(at),
        start_(at) {}

  const PickleValue* read();
  // Where the pickle ended: another may begin there.
  size_t end() const { return at_; }

 private:
  // In a pickle of images each has a name and a label, in one of a net each tensor has a dozen
  // values: this is far more than any real file has.
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
  PickleValue& top(const char* name);
  void make_tuple(size_t count);
  void extend(Kind kind, std::vector<const PickleValue*> added);
  void name_function(std::string_view module, std::string_view name);

  const std::string& path_;
  std::string_view content_;
  std::deque<PickleValue>& values_;
  OnFunction on_function_;
  size_t at_, start_;  // the next byte, and that of the current instruction
  std::vector<PickleValue*> stack_;
  std::vector<size_t> marks_;
  std::map<uint64_t, PickleValue*> memo_;
};

}  // namespace crema
