#include "comm/control_frames.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace crema {

FrameWriter::FrameWriter(FrameType type, size_t reserved) {
  bytes_.reserve(kFrameHeader + reserved);
  bytes_.push_back(static_cast<char>(type));
  bytes_.append(kFrameHeader - 1, '\0');
}

FrameWriter& FrameWriter::number(int64_t value) {
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  return *this;
}

FrameWriter& FrameWriter::text(std::string_view value) {
  number(static_cast<int64_t>(value.size()));
  bytes_.append(value);
  return *this;
}

Bytes FrameWriter::finish() {
  const uint64_t length = bytes_.size() - kFrameHeader;
  std::memcpy(bytes_.data() + 1, &length, sizeof length);
  const Sha256::Digest digest = sha256(bytes_);
  return std::make_shared<const FrameBytes>(FrameBytes{std::move(bytes_), digest});
}

int64_t FrameFields::number() {
  int64_t value = 0;
  require(rest_.size() >= sizeof value, "a frame of the control connection is too short");
  std::memcpy(&value, rest_.data(), sizeof value);
  rest_.remove_prefix(sizeof value);
  return value;
}

std::string FrameFields::text() {
  const int64_t length = number();
  require(length >= 0 && static_cast<uint64_t>(length) <= rest_.size(),
          "a text of the control connection is cut");
  std::string value(rest_.substr(0, static_cast<size_t>(length)));
  rest_.remove_prefix(static_cast<size_t>(length));
  return value;
}

char* FrameReader::space(size_t* size) {
  if (filled_ < kFrameHeader) {
    *size = kFrameHeader - filled_;
    return header_ + filled_;
  }
  // Memory is taken as bytes come, not for a length that somebody states.
  constexpr size_t kStep = size_t{1} << 20;
  const size_t at = filled_ - kFrameHeader;
  if (at >= length_) {
    *size = kFrameCode - (at - length_);
    return code_ + (at - length_);
  }
  if (payload_.size() == at) payload_.resize(std::min(length_, at + std::max(kStep, at)));
  *size = payload_.size() - at;
  return payload_.data() + at;
}

bool FrameReader::added(size_t count) {
  const bool in_header = filled_ < kFrameHeader;
  const size_t at = in_header ? 0 : filled_ - kFrameHeader;
  if (!in_header && at < length_) hash_.add(std::string_view(payload_).substr(at, count));
  filled_ += count;
  if (in_header && filled_ == kFrameHeader) {
    uint64_t length = 0;
    std::memcpy(&length, header_ + 1, sizeof length);
    const auto type = static_cast<uint8_t>(header_[0]);
    require(type >= static_cast<uint8_t>(kFirstFrameType) &&
                type <= static_cast<uint8_t>(kLastFrameType) && length <= max_payload_,
            "what came over the control connection is no frame of it");
    length_ = length;
    hash_.add({header_, kFrameHeader});
  }
  return whole();
}

Frame FrameReader::take() {
  Frame frame{static_cast<FrameType>(header_[0]), std::move(payload_), hash_.digest(),
              std::string(code_, kFrameCode)};
  payload_.clear();
  hash_ = Sha256();
  filled_ = length_ = 0;
  return frame;
}

}  // namespace crema
