// Frames: the messages of the control connection. A frame is its type, one byte, the length of its
// payload, eight bytes, the payload, and a code that shows who has sent it (comm/control_keys.h).
// Numbers are little-endian, as on every machine that a rank runs on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.h"

namespace crema {

enum class FrameType : uint8_t {
  // While the ranks meet; `from` rank 0 where not said otherwise.
  challenge = 1,  // to everyone who connects (comm/control_keys.h)
  handshake,      // from another rank: its first frame
  accepted,       // the handshake was right
  refused,        // it was not: why
  welcome,        // all have come: their hosts, the addresses of rank 1
  missing,        // some have not come in time: the message, which rank 0 itself tells the user
  // Afterwards.
  text,     // from another rank: number of the gather, iteration, text
  texts,    // number of the gather, iteration, the texts of all ranks
  beat,     // each second, in both directions: iteration, whether the rank is paused, its steps,
            // whether it waits for others
  lost,     // in both directions: what has happened, the rank that tells the user
  failed,   // in both directions: this rank has failed and says so itself
  goodbye,  // in both directions: this rank is done
  teller,   // from rank 1 to a rank that asks: the rank that tells the user
};
constexpr auto kFirstFrameType = FrameType::challenge, kLastFrameType = FrameType::teller;

constexpr size_t kFrameHeader = 9, kFrameCode = 16;
// A handshake has a host name of at most a few hundred bytes; the sender is not authenticated yet.
constexpr size_t kMaxHandshake = 4096;
constexpr size_t kMaxFrame = size_t{1} << 31;

// A frame without its code, which each connection makes from the digest. Several may send it.
struct FrameBytes {
  std::string text;
  Sha256::Digest digest{};  // of the text
};
using Bytes = std::shared_ptr<const FrameBytes>;

class FrameWriter {
 public:
  explicit FrameWriter(FrameType type, size_t reserved = 64);
  FrameWriter& number(int64_t value);
  FrameWriter& text(std::string_view value);
  Bytes finish();

 private:
  std::string bytes_;
};

// Reads the payload in the order in which it was written; Error if it is shorter.
class FrameFields {
 public:
  explicit FrameFields(std::string_view payload) : rest_(payload) {}
  int64_t number();
  std::string text();

 private:
  std::string_view rest_;
};

struct Frame {
  FrameType type = FrameType::handshake;
  std::string payload;
  Sha256::Digest digest{};  // of the header and the payload
  std::string code;
};

// Assembles frames from what a socket delivers, in pieces of any size.
class FrameReader {
 public:
  explicit FrameReader(size_t max_payload) : max_payload_(max_payload) {}
  void allow(size_t max_payload) { max_payload_ = max_payload; }

  // Where to put the next bytes; `count` have arrived. Error for a frame of an unknown type or too
  // large. True when a frame is complete: take() it before the next call.
  char* space(size_t* size);
  bool added(size_t count);
  Frame take();
  bool inside_frame() const { return filled_ > 0; }

 private:
  bool whole() const {
    return filled_ >= kFrameHeader && filled_ - kFrameHeader == length_ + kFrameCode;
  }

  size_t max_payload_;
  char header_[kFrameHeader] = {};
  std::string payload_;
  char code_[kFrameCode] = {};
  size_t filled_ = 0, length_ = 0;  // header and code included; of the payload
  Sha256 hash_;
};

}  // namespace crema
