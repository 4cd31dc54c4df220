// Pickles as Python 2's cPickle writes those of CIFAR: protocol 2, texts and the bytes of arrays as
// str.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace crema::tests {

inline std::string little_endian(uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(number >> (8 * i)));
  return text;
}

inline std::string python2_text(const std::string& text) {
  if (text.size() < 256) return "U" + little_endian(text.size(), 1) + text;
  return "T" + little_endian(text.size(), 4) + text;
}

inline std::string python2_list(const std::vector<int>& numbers) {
  std::string list = "](";
  for (const int number : numbers) list += "K" + little_endian(static_cast<uint64_t>(number), 1);
  return list + "e";
}

// An array of bytes with so many rows and columns.
inline std::string python2_array(int rows, int columns, const std::string& bytes) {
  using namespace std::string_literals;
  const std::string type =
      "cnumpy\ndtype\nU\x02u1K\0K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"s;
  return "cnumpy.core.multiarray\n_reconstruct\nq\x07"
         "cnumpy\nndarray\nq\x08K\0\x85U\x01"
         "b\x87Rq\x09(K\x01M"s +
         little_endian(static_cast<uint64_t>(rows), 2) + "M" +
         little_endian(static_cast<uint64_t>(columns), 2) + "\x86" + type + "\x89" +
         python2_text(bytes) + "tb";
}

// A dict: names, and values that are pickled already.
inline std::string python2_dict(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string dict = "\x80\x02}q\x01(";
  for (const auto& [name, value] : entries) dict += python2_text(name) + value;
  return dict + "u.";
}

}  // namespace crema::tests
