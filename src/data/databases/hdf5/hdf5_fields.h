// Hdf5Fields: reads the numbers of a structure of an HDF5 file in sequence. They are little-endian.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace crema {

// How a structure violates the format. Code with the file's path adds it.
class Hdf5Damage : public Error {
 public:
  using Error::Error;
};

constexpr uint64_t kHdf5Nowhere = UINT64_MAX;  // the address of something that is not stored

class Hdf5Fields {
 public:
  // `position`: of the first byte in the file.
  Hdf5Fields(std::string what, uint64_t position, std::vector<uint8_t> bytes)
      : what_(std::move(what)), position_(position), bytes_(std::move(bytes)) {}

  const std::vector<uint8_t>& bytes() const { return bytes_; }
  size_t left() const { return bytes_.size() - at_; }
  uint64_t position() const { return position_ + at_; }

  uint64_t number(size_t size) {
    need(size);
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value |= uint64_t{bytes_[at_ + i]} << (8 * i);
    at_ += size;
    return value;
  }
  uint64_t address() { return number(8); }
  void skip(uint64_t size) {
    need(size);
    at_ += size;
  }
  // The next `size` bytes, as separate fields.
  Hdf5Fields part(uint64_t size, const std::string& what) {
    const uint64_t position = this->position();
    skip(size);
    return {what, position, {bytes_.begin() + at_ - size, bytes_.begin() + at_}};
  }
  // Skips a string and its terminating zero.
  uint64_t skip_text() {
    const size_t begin = at_;
    while (number(1) != 0) {
    }
    return at_ - begin;
  }
  void signature(const char* four) {
    need(4);
    expect(std::equal(four, four + 4, bytes_.begin() + at_), "does not begin with ", four);
    at_ += 4;
  }

  template <typename... Parts>
  void expect(bool so, const Parts&... why) const {
    if (so) return;
    const std::string position =
        position_ == kHdf5Nowhere ? "without an address" : cat("at byte ", position_);
    throw Hdf5Damage(cat(what_, " ", position, " ", why...));
  }

 private:
  void need(uint64_t size) const {
    expect(size <= left(), "is ", bytes_.size(), " bytes long, too short for what it holds");
  }

  std::string what_;
  uint64_t position_;
  std::vector<uint8_t> bytes_;
  size_t at_ = 0;
};

}  // namespace crema
