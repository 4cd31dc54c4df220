// Values as bytes, by which ranks, which run the same program, tell each other what they have
// counted. They are read in the order in which they were added.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"

namespace crema {

// Numbers, structs of numbers, vectors of these, and texts.
class Packer {
 public:
  template <typename... Values>
  void add(const Values&... values) {
    (one(values), ...);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  template <typename T>
  void one(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <typename T>
  void one(const std::vector<T>& list) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    one(list.size());
    if (list.empty()) return;
    bytes_.append(reinterpret_cast<const char*>(list.data()), list.size() * sizeof(T));
  }
  void one(const std::string& text) {
    one(text.size());
    bytes_ += text;
  }

  std::string bytes_;
};

class Unpacker {
 public:
  // `bytes` must outlive this object.
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}

  // Error when fewer bytes are left.
  template <typename... Values>
  void get(Values&... values) {
    (one(values), ...);
  }
  // Error when bytes are left.
  void end() const {
    if (!bytes_.empty()) differ();
  }

 private:
  template <typename T>
  void one(T& value) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    take(&value, 1, sizeof value);
  }
  template <typename T>
  void one(std::vector<T>& list) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    size_t count = 0;
    one(count);
    if (count > bytes_.size() / sizeof(T)) differ();
    list.resize(count);
    take(list.data(), count, sizeof(T));
  }
  void one(std::string& text) {
    size_t count = 0;
    one(count);
    if (count > bytes_.size()) differ();
    text = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
  }
  void take(void* to, size_t count, size_t size) {
    if (count > bytes_.size() / size) differ();
    if (count == 0) return;
    std::memcpy(to, bytes_.data(), count * size);
    bytes_.remove_prefix(count * size);
  }
  [[noreturn]] static void differ() {
    fail(
        "what another rank has counted is of another size than expected: the ranks do not test "
        "the same net; start all of them with the same program, files and flags");
  }

  std::string_view bytes_;
};

}  // namespace crema
