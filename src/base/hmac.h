// HMAC-SHA256 (RFC 2104): shows that a message comes from someone who has the key.
#pragma once

#include <string>
#include <string_view>

#include "base/sha256.h"

namespace crema {

Sha256::Digest hmac_sha256(std::string_view key, std::string_view message);
// Takes the same time wherever they differ.
bool same_bytes(std::string_view a, std::string_view b);
// Random numbers of the system, for keys and tokens. Error if it gives none.
std::string random_bytes(size_t count);
// 128 random bits, "3f0c...".
std::string random_token();

}  // namespace crema
