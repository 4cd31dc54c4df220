#include "net/weights/wire_reader_cursor.h"

#include <cstring>

#include "base/error.h"

namespace crema {

WireCursor::WireCursor(const std::string& file, const char* kind, const void* begin, size_t size,
                       uint64_t offset)
    : file_(&file),
      kind_(kind),
      begin_(static_cast<const uint8_t*>(begin)),
      here_(begin_),
      end_(begin_ + size),
      offset_(offset) {}

WireCursor::WireCursor(const WireCursor& outer, size_t size)
    : file_(outer.file_),
      kind_(outer.kind_),
      begin_(outer.begin_),
      here_(outer.here_),
      end_(outer.here_ + size),
      offset_(outer.offset_) {}

void WireCursor::corrupt(std::string_view what) const {
  fail(*file_, ": byte ", offset_ + static_cast<uint64_t>(here_ - begin_), ": ", what,
       "; the file is damaged or no ", kind_, " (was it copied or downloaded completely?)");
}

const uint8_t* WireCursor::take(size_t size) {
  if (size > left()) {
    corrupt(cat("the data ends here, ", size - left(), " bytes are missing"));
  }
  const uint8_t* start = here_;
  here_ += size;
  return start;
}

uint64_t WireCursor::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint8_t byte = *take(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  corrupt("a number is longer than ten bytes");
}

WireCursor::Tag WireCursor::tag() {
  const uint64_t value = varint();
  const uint64_t field = value >> 3, kind = value & 7;
  constexpr uint64_t kLastField = (1u << 29) - 1;
  if (field == 0 || field > kLastField || kind > kFixed32) corrupt("this is not a field");
  return {static_cast<uint32_t>(field), static_cast<Kind>(kind)};
}

WireCursor WireCursor::part() {
  const uint64_t size = varint();
  if (size > left()) corrupt(cat("a part of ", size, " bytes starts here, ", left(), " are left"));
  WireCursor inner(*this, size);
  here_ += size;
  return inner;
}

void WireCursor::skip(Tag tag) { skip(tag, 0); }

void WireCursor::skip(Tag tag, int depth) {
  constexpr int kDeepest = 64;
  switch (tag.kind) {
    case kVarint:
      varint();
      return;
    case kFixed64:
      take(8);
      return;
    case kFixed32:
      take(4);
      return;
    case kBytes:
      part();
      return;
    case kGroupEnd:
      corrupt("a group ends that did not begin");
    case kGroupBegin:
      break;
  }
  if (depth == kDeepest) corrupt("groups are nested too deeply");
  while (true) {
    const Tag inner = this->tag();
    if (inner.kind == kGroupEnd) {
      if (inner.field != tag.field) corrupt("another group ends than began");
      return;
    }
    skip(inner, depth + 1);
  }
}

template <typename Number>
void WireCursor::numbers(Tag tag, Kind single, std::vector<float>* out) {
  if (tag.kind == single) {
    Number value;
    std::memcpy(&value, take(sizeof(value)), sizeof(value));
    out->push_back(static_cast<float>(value));
    return;
  }
  if (tag.kind != kBytes) corrupt("numbers are stored in an unknown way");
  const WireCursor packed = part();
  if (packed.left() % sizeof(Number) != 0) packed.corrupt("a list of numbers is cut off");
  const size_t old = out->size(), count = packed.left() / sizeof(Number);
  out->resize(old + count);
  if constexpr (sizeof(Number) == sizeof(float)) {
    if (count > 0) std::memcpy(out->data() + old, packed.here_, packed.left());
  } else {
    for (size_t i = 0; i < count; ++i) {
      Number value;
      std::memcpy(&value, packed.here_ + i * sizeof(value), sizeof(value));
      (*out)[old + i] = static_cast<float>(value);
    }
  }
}

void WireCursor::floats(Tag tag, std::vector<float>* out) { numbers<float>(tag, kFixed32, out); }

void WireCursor::doubles(Tag tag, std::vector<float>* out) { numbers<double>(tag, kFixed64, out); }

void WireCursor::whole_numbers(Tag tag, std::vector<int64_t>* out) {
  if (tag.kind == kVarint) return out->push_back(static_cast<int64_t>(varint()));
  if (tag.kind != kBytes) corrupt("whole numbers are stored in an unknown way");
  for (WireCursor packed = part(); !packed.done();) {
    out->push_back(static_cast<int64_t>(packed.varint()));
  }
}

}  // namespace crema
