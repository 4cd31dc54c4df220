// The numbers of a structure of an HDF5 file, one after another. They are little-endian.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace crema {

// Why a structure is not what the format says. Those who know the file's path say it.
class Hdf5Damage : public Error {
 public:
  using Error::Error;
};

constexpr uint64_t kHdf5Nowhere = UINT64_MAX;  // the address of what is not stored

class Hdf5Fields {
 public:
  // `place`: of the first byte in the file.
  Hdf5Fields(std::string what, uint64_t place, std::vector<uint8_t> bytes)
      : what_(std::move(what)), place_(place), bytes_(std::move(bytes)) {}

  const std::vector<uint8_t>& bytes() const { return bytes_; }
  size_t left() const { return bytes_.size() - at_; }
  uint64_t place() const { return place_ + at_; }

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
  // The next ones, as fields of their own.
  Hdf5Fields part(uint64_t size, const std::string& what) {
    const uint64_t place = this->place();
    skip(size);
    return {what, place, {bytes_.begin() + at_ - size, bytes_.begin() + at_}};
  }
  // Behind a text's end, which is a zero.
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
    const std::string place = place_ == kHdf5Nowhere ? "without a place" : cat("at byte ", place_);
    throw Hdf5Damage(cat(what_, " ", place, " ", why...));
  }

 private:
  void need(uint64_t size) const {
    expect(size <= left(), "is ", bytes_.size(), " bytes long, too short for what it holds");
  }

  std::string what_;
  uint64_t place_;
  std::vector<uint8_t> bytes_;
  size_t at_ = 0;
};

}  // namespace crema
