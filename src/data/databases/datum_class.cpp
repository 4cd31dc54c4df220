#include "data/databases/datum_class.h"

#include <algorithm>

#include "base/error.h"
#include "proto/data.pb.h"

namespace crema {
namespace {

// With what LMDB has in front of a large value, a page.
constexpr size_t kSkimmed = 4096 - 16;

// Goes from field to field of a message in protobuf's encoding.
class FieldWalk {
 public:
  FieldWalk(uint64_t size,
            const std::function<void(uint64_t offset, void* bytes, size_t count)>& read)
      : size_(size), read_(read) {}

  bool done() const { return at_ == size_; }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint64_t byte = next();
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    damaged();
  }
  void skip(uint64_t count) {
    if (count > size_ - at_) damaged();
    at_ += count;
  }
  [[noreturn]] static void damaged() {
    fail(
        "its bytes are not a message of type Datum: the database is damaged, or was not made for "
        "training");
  }

 private:
  unsigned char next() {
    if (done()) damaged();
    if (at_ < begin_ || at_ >= begin_ + held_) {
      begin_ = at_;
      held_ = static_cast<size_t>(std::min<uint64_t>(kSkimmed, size_ - at_));
      read_(begin_, bytes_, held_);
    }
    return bytes_[at_++ - begin_];
  }

  const uint64_t size_;
  const std::function<void(uint64_t offset, void* bytes, size_t count)>& read_;
  uint64_t at_ = 0, begin_ = 0;
  size_t held_ = 0;
  unsigned char bytes_[kSkimmed];
};

}  // namespace

std::optional<int64_t> class_of_datum(
    uint64_t size, const std::function<void(uint64_t offset, void* bytes, size_t count)>& read) {
  FieldWalk walk(size, read);
  int32_t label = 0;
  bool several = false;
  while (!walk.done()) {
    const uint64_t tag = walk.varint(), field = tag >> 3;
    switch (tag & 7) {
      case 0: {
        const uint64_t value = walk.varint();
        if (field == Datum::kLabelFieldNumber) label = static_cast<int32_t>(value);
        break;
      }
      case 1:
        walk.skip(8);
        break;
      case 2: {
        const uint64_t count = walk.varint();
        several |= field == Datum::kLabelsFieldNumber && count > 0;
        walk.skip(count);
        break;
      }
      case 5:
        several |= field == Datum::kLabelsFieldNumber;
        walk.skip(4);
        break;
      default:
        FieldWalk::damaged();
    }
  }
  if (several) return {};
  return label;
}

}  // namespace crema
