#include "base/pickle_reader.h"

#include <bit>

namespace crema {

const PickleValue* PickleReader::read() {
  constexpr unsigned char kProtocol = 0x80, kStop = '.';
  constexpr uint64_t kNewest = 5;
  if (at_ >= content_.size() || static_cast<unsigned char>(content_[at_]) != kProtocol)
    wrong("a pickle of protocol 2 or newer begins with 0x80");
  take(1);
  const uint64_t protocol = unsigned_of(1);
  if (protocol < 2 || protocol > kNewest)
    wrong("its protocol is ", protocol, ", but 2 to ", kNewest, " are read");
  for (;;) {
    start_ = at_;
    const auto code = static_cast<unsigned char>(take(1)[0]);
    if (code == kStop) return pop();
    step(code);
  }
}

void PickleReader::step(unsigned char code) {
  constexpr unsigned char kFrame = 0x95;
  if (code == kFrame) {
    take(8);  // the length of what follows, which only helps to read ahead
    return;
  }
  if (push_number(code) || push_text(code) || join(code) || remember(code) || call(code)) return;
  constexpr const char* kDigits = "0123456789abcdef";
  const char hex[] = {'0', 'x', kDigits[code >> 4], kDigits[code & 15], 0};
  wrong("the instruction ", hex, " is none that pickles of data have");
}

bool PickleReader::push_number(unsigned char code) {
  const auto integer = [&](int64_t value) { make(Kind::integer).integer = value; };
  switch (code) {
    case 'N':
      make(Kind::none);
      return true;
    case 0x88:
    case 0x89:
      integer(code == 0x88);
      return true;
    case 'K':
      integer(static_cast<int64_t>(unsigned_of(1)));
      return true;
    case 'M':
      integer(static_cast<int64_t>(unsigned_of(2)));
      return true;
    case 'J':
      integer(signed_of(take(4)));
      return true;
    case 0x8a: {
      const std::string_view bytes = take(unsigned_of(1));
      if (bytes.size() > 8) wrong("an integer has ", bytes.size(), " bytes; at most 8 are read");
      integer(signed_of(bytes));
      return true;
    }
    case 'G': {
      uint64_t bits = 0;  // big-endian
      for (const char byte : take(8)) bits = bits << 8 | static_cast<unsigned char>(byte);
      make(Kind::real).real = std::bit_cast<double>(bits);
      return true;
    }
    default:
      return false;
  }
}

// str of Python 2, unicode, bytes and bytearray, with lengths of 1, 4 or 8 bytes.
bool PickleReader::push_text(unsigned char code) {
  switch (code) {
    case 'U':
    case 'C':
    case 0x8c:
      push_view(take(unsigned_of(1)));
      return true;
    case 'T':
    case 'X':
    case 'B':
      push_view(take(unsigned_of(4)));
      return true;
    case 0x8d:
    case 0x8e:
    case 0x96:
      push_view(take(unsigned_of(8)));
      return true;
    default:
      return false;
  }
}

bool PickleReader::join(unsigned char code) {
  switch (code) {
    case '(':
      marks_.push_back(stack_.size());
      return true;
    case '0':
      pop();
      return true;
    case ']':
      make(Kind::list);
      return true;
    case '}':
      make(Kind::dict);
      return true;
    case ')':
      make(Kind::tuple);
      return true;
    case 't':
    case 'l': {
      std::vector<const PickleValue*> items = pop_to_mark();
      make(code == 't' ? Kind::tuple : Kind::list).items = std::move(items);
      return true;
    }
    case 0x85:
    case 0x86:
    case 0x87:
      make_tuple(code - 0x84u);
      return true;
    case 'a':
      extend(Kind::list, {pop()});
      return true;
    case 'e':
      extend(Kind::list, pop_to_mark());
      return true;
    case 's': {
      const PickleValue *value = pop(), *key = pop();
      extend(Kind::dict, {key, value});
      return true;
    }
    case 'u':
      extend(Kind::dict, pop_to_mark());
      return true;
    default:
      return false;
  }
}

// A value that is used several times is numbered where it first occurs.
bool PickleReader::remember(unsigned char code) {
  const auto keep = [&](uint64_t number) {
    if (stack_.empty()) wrong("there is no value to number");
    memo_[number] = stack_.back();
  };
  const auto repeat = [&](uint64_t number) {
    const auto found = memo_.find(number);
    if (found == memo_.end()) wrong("no value has the number ", number);
    stack_.push_back(found->second);
  };
  switch (code) {
    case 'q':
      keep(unsigned_of(1));
      return true;
    case 'r':
      keep(unsigned_of(4));
      return true;
    case 0x94:
      keep(memo_.size());
      return true;
    case 'h':
      repeat(unsigned_of(1));
      return true;
    case 'j':
      repeat(unsigned_of(4));
      return true;
    default:
      return false;
  }
}

bool PickleReader::call(unsigned char code) {
  switch (code) {
    case 'c': {
      const std::string_view module = line();
      name_function(module, line());
      return true;
    }
    case 0x93: {
      const PickleValue *name = pop(), *module = pop();
      if (name->kind != Kind::text || module->kind != Kind::text)
        wrong("a function's name is no text");
      name_function(module->text, name->text);
      return true;
    }
    case 0x81:  // a class and the arguments of its constructor
    case 'R': {
      const PickleValue *arguments = pop(), *function = pop();
      if (function->kind != Kind::function || arguments->kind != Kind::tuple)
        wrong("a call needs a function and a tuple of arguments");
      make(Kind::call).items = {function, arguments};
      return true;
    }
    case 'b': {
      const PickleValue* state = pop();
      PickleValue& result = top("called function's result");
      if (result.kind != Kind::call) wrong("there is no called function's result to extend");
      result.state = state;
      return true;
    }
    case 'Q': {
      const PickleValue* identity = pop();
      make(Kind::reference).items = {identity};
      return true;
    }
    default:
      return false;
  }
}

std::string_view PickleReader::take(uint64_t count) {
  if (count > content_.size() - at_) {
    wrong("the file ends after ", content_.size() - at_, " of ", count, " bytes that belong here");
  }
  const std::string_view part = content_.substr(at_, count);
  at_ += count;
  return part;
}

uint64_t PickleReader::unsigned_of(int bytes) {
  uint64_t value = 0;
  int shift = 0;
  for (const char byte : take(static_cast<uint64_t>(bytes))) {
    value |= uint64_t{static_cast<unsigned char>(byte)} << shift;
    shift += 8;
  }
  return value;
}

int64_t PickleReader::signed_of(std::string_view bytes) const {
  if (bytes.empty()) return 0;
  uint64_t value = (bytes.back() & 0x80) != 0 ? ~uint64_t{0} : 0;
  for (auto byte = bytes.rbegin(); byte != bytes.rend(); ++byte)
    value = value << 8 | static_cast<unsigned char>(*byte);
  return static_cast<int64_t>(value);
}

std::string_view PickleReader::line() {
  const size_t end = content_.find('\n', at_);
  if (end == std::string_view::npos) wrong("the file ends inside a name");
  const std::string_view text = take(end - at_);
  take(1);
  return text;
}

PickleValue& PickleReader::make(Kind kind) {
  if (values_.size() == kMaxValues) wrong("there are more than ", kMaxValues, " values");
  values_.emplace_back().kind = kind;
  stack_.push_back(&values_.back());
  return values_.back();
}

PickleValue* PickleReader::pop() {
  if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size()))
    wrong("a value is missing");
  PickleValue* const value = stack_.back();
  stack_.pop_back();
  return value;
}

std::vector<const PickleValue*> PickleReader::pop_to_mark() {
  if (marks_.empty()) wrong("the beginning of a list is missing");
  std::vector<const PickleValue*> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()),
                                        stack_.end());
  stack_.resize(marks_.back());
  marks_.pop_back();
  return items;
}

PickleValue& PickleReader::top(const char* name) {
  const bool there = !stack_.empty() && (marks_.empty() || marks_.back() < stack_.size());
  if (!there) wrong("there is no ", name, " to extend");
  return *stack_.back();
}

// A list, or a dict, or the result of a call, which then is a kind of dict.
void PickleReader::extend(Kind kind, std::vector<const PickleValue*> added) {
  const char* name = kind == Kind::list ? "list" : "dict";
  if (kind == Kind::dict && added.size() % 2 != 0) wrong("a key has no value");
  PickleValue& value = top(name);
  if (value.kind != kind && (kind == Kind::list || value.kind != Kind::call))
    wrong("there is no ", name, " to extend");
  value.items.insert(value.items.end(), added.begin(), added.end());
}

void PickleReader::name_function(std::string_view module, std::string_view name) {
  PickleValue& function = make(Kind::function);
  function.module = module;
  function.text = name;
  if (on_function_) on_function_(function, start_);
}

void PickleReader::make_tuple(size_t count) {
  std::vector<const PickleValue*> items(count);
  for (size_t i = count; i > 0; --i) items[i - 1] = pop();
  make(Kind::tuple).items = std::move(items);
}

}  // namespace crema
