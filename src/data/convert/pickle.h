// Pickle: entries of the pickled dictionaries that data sets are: lists of numbers, and NumPy arrays of
// bytes.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/pickle_reader.h"
#include "tensor/shape.h"

namespace crema {

class Pickle {
 public:
  // Error names the path, the byte and the problem.
  explicit Pickle(const std::string& path);
  Pickle(const Pickle&) = delete;
  Pickle& operator=(const Pickle&) = delete;

  // These read an entry of the pickle, which must be a dict. Error when it is not that.
  std::vector<int64_t> integers(const std::string& key) const;
  std::vector<std::string> texts(const std::string& key) const;
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
