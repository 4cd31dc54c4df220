#include "base/hmac.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace crema {

Sha256::Digest hmac_sha256(std::string_view key, std::string_view message) {
  constexpr size_t kBlock = 64;
  std::string inner(kBlock, '\0');
  if (key.size() > kBlock) {
    const Sha256::Digest digest = sha256(key);
    std::copy(digest.begin(), digest.end(), inner.begin());
  } else {
    std::copy(key.begin(), key.end(), inner.begin());
  }
  std::string outer = inner;
  for (char& byte : inner) byte = static_cast<char>(byte ^ 0x36);
  for (char& byte : outer) byte = static_cast<char>(byte ^ 0x5c);
  const Sha256::Digest first = Sha256().add(inner).add(message).digest();
  return Sha256()
      .add(outer)
      .add({reinterpret_cast<const char*>(first.data()), first.size()})
      .digest();
}

bool same_bytes(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

std::string random_bytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t at = 0; at < count;) {
    const ssize_t got = getrandom(bytes.data() + at, count - at, 0);
    if (got < 0 && errno == EINTR) continue;
    require(got > 0, "the system gives no random numbers: ", std::strerror(errno));
    at += static_cast<size_t>(got);
  }
  return bytes;
}

std::string random_token() {
  std::string token;
  for (const char byte : random_bytes(16)) {
    token += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
    token += "0123456789abcdef"[byte & 15];
  }
  return token;
}

}  // namespace crema
