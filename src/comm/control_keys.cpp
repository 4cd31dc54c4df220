#include "comm/control_keys.h"

#include "base/error.h"
#include "base/hmac.h"

namespace crema {
namespace {

constexpr std::string_view kMagic = "crema control 2";
constexpr size_t kNonce = 16;

std::string_view text_of(const Sha256::Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

CodeKey key_of(const std::string& token, std::string_view direction, const std::string& listener,
               const std::string& pending_peer) {
  const Sha256::Digest key = hmac_sha256(token, cat(kMagic, direction, listener, pending_peer));
  return {std::string(text_of(key)), 0};
}

CodeKey to_listener(const std::string& token, const std::string& listener,
                    const std::string& pending_peer) {
  return key_of(token, " to who listens", listener, pending_peer);
}

CodeKey from_listener(const std::string& token, const std::string& listener,
                      const std::string& pending_peer) {
  return key_of(token, " from who listens", listener, pending_peer);
}

}  // namespace

std::string CodeKey::code_of(const Sha256::Digest& digest) {
  if (key.empty()) return std::string(kFrameCode, '\0');
  std::string message(reinterpret_cast<const char*>(&next), sizeof next);
  message += text_of(digest);
  ++next;
  return std::string(text_of(hmac_sha256(key, message)).substr(0, kFrameCode));
}

void CodeKey::check(const Frame& frame) {
  require(key.empty() || same_bytes(frame.code, code_of(frame.digest)),
          "a frame that a stranger has made, changed or sent again");
}

std::string random_nonce() { return random_bytes(kNonce); }

Bytes challenge_of(const std::string& nonce) {
  return FrameWriter(FrameType::challenge).text(kMagic).text(nonce).finish();
}

Handshake read_handshake(const Frame& frame, const std::string& token, const std::string& nonce,
                         ConnectionKeys* keys) {
  FrameFields fields(frame.payload);
  require(frame.type == FrameType::handshake && fields.text() == kMagic, "this is no handshake");
  const std::string pending_peer = fields.text();
  require(pending_peer.size() == kNonce, "a handshake without its random number");
  keys->receive = to_listener(token, nonce, pending_peer);
  keys->send = from_listener(token, nonce, pending_peer);
  keys->receive.check(frame);
  Handshake handshake;
  handshake.ranks = fields.number();
  handshake.rank = fields.number();
  handshake.host = fields.text();
  handshake.standby = fields.text();
  return handshake;
}

Bytes answer_challenge(const Frame& frame, const std::string& token, const Handshake& handshake,
                       ConnectionKeys* keys) {
  FrameFields fields(frame.payload);
  require(frame.type == FrameType::challenge && fields.text() == kMagic, "this is no challenge");
  const std::string listener = fields.text(), pending_peer = random_nonce();
  require(listener.size() == kNonce, "a challenge without its random number");
  keys->send = to_listener(token, listener, pending_peer);
  keys->receive = from_listener(token, listener, pending_peer);
  return FrameWriter(FrameType::handshake)
      .text(kMagic)
      .text(pending_peer)
      .number(handshake.ranks)
      .number(handshake.rank)
      .text(handshake.host)
      .text(handshake.standby)
      .finish();
}

}  // namespace crema
