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
               const std::string& guest) {
  const Sha256::Digest key = hmac_sha256(token, cat(kMagic, direction, listener, guest));
  return {std::string(text_of(key)), 0};
}

CodeKey to_listener(const std::string& token, const std::string& listener,
                    const std::string& guest) {
  return key_of(token, " to who listens", listener, guest);
}

CodeKey from_listener(const std::string& token, const std::string& listener,
                      const std::string& guest) {
  return key_of(token, " from who listens", listener, guest);
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

Hello read_hello(const Frame& frame, const std::string& token, const std::string& nonce,
                 ConnectionKeys* keys) {
  FrameFields fields(frame.payload);
  require(frame.type == FrameType::hello && fields.text() == kMagic, "this is no hello");
  const std::string guest = fields.text();
  require(guest.size() == kNonce, "a hello without its random number");
  keys->receive = to_listener(token, nonce, guest);
  keys->send = from_listener(token, nonce, guest);
  keys->receive.check(frame);
  Hello hello;
  hello.ranks = fields.number();
  hello.rank = fields.number();
  hello.host = fields.text();
  hello.deputy = fields.text();
  return hello;
}

Bytes answer_challenge(const Frame& frame, const std::string& token, const Hello& hello,
                       ConnectionKeys* keys) {
  FrameFields fields(frame.payload);
  require(frame.type == FrameType::challenge && fields.text() == kMagic, "this is no challenge");
  const std::string listener = fields.text(), guest = random_nonce();
  require(listener.size() == kNonce, "a challenge without its random number");
  keys->send = to_listener(token, listener, guest);
  keys->receive = from_listener(token, listener, guest);
  return FrameWriter(FrameType::hello)
      .text(kMagic)
      .text(guest)
      .number(hello.ranks)
      .number(hello.rank)
      .text(hello.host)
      .text(hello.deputy)
      .finish();
}

}  // namespace crema
