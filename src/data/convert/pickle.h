// Pickle: reads Python's pickles as far as data sets need it: numbers, texts, lists, tuples,
// dictionaries, and NumPy arrays of bytes, in the protocols 2 to 5 as Python 2 and 3 write them.
// Nothing in a pickle is executed: a call becomes a value that names the function and its arguments.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/shape.h"

namespace crema {

struct PickleValue {
  enum class Kind { none, integer, real, text, list, tuple, dict, function, call };
  Kind kind = Kind::none;
  int64_t integer = 0;
  double real = 0;
  std::string_view module, text;  // of a function; `text` also the bytes of str, unicode and bytes
  // Of a list or tuple; of a dict its keys and values in turn; of a call the function and the tuple
  // of its arguments.
  std::vector<const PickleValue*> items{};
  const PickleValue* state = nullptr;  // what a call's result was given afterwards
};

class Pickle {
 public:
  // Error names the path, the byte and what is wrong there.
  explicit Pickle(const std::string& path);
  Pickle(const Pickle&) = delete;
  Pickle& operator=(const Pickle&) = delete;

  // These read an entry of the pickle, which must be a dict. Error when it is not that.
  std::vector<int64_t> integers(const std::string& key) const;
  struct Bytes {
    Shape shape;
    std::string values;
  };
  Bytes bytes(const std::string& key) const;

 private:
  const PickleValue& entry(const std::string& key) const;

  std::string path_, content_;
  std::deque<PickleValue> values_;  // they point to each other
  const PickleValue* root_ = nullptr;
};

}  // namespace crema
