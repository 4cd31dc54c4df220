#include "base/visible.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace crema {
namespace {

// The size in bytes of the first character of a text, and its code point; 0 bytes: not UTF-8.
struct Character {
  size_t bytes;
  uint32_t code;
};

Character first_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, lead};
  const size_t bytes = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (bytes == 0 || bytes > text.size()) return {0, 0};
  uint32_t code = lead & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0, 0};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  const bool too_long = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool no_character = (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF;
  return too_long || no_character ? Character{0, 0} : Character{bytes, code};
}

bool is_shown(uint32_t code) {
  const bool control = (code < 0x20 && code != '\t') || (code >= 0x7F && code < 0xA0);
  const bool breaks_lines = code == 0x2028 || code == 0x2029;
  const bool turns = (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  return !control && !breaks_lines && !turns;
}

}  // namespace

std::string visible(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character next = first_character(text);
    const std::string_view bytes = text.substr(0, std::max<size_t>(next.bytes, 1));
    text.remove_prefix(bytes.size());
    if (next.bytes > 0 && is_shown(next.code)) {
      out += bytes;
      continue;
    }
    for (const char c : bytes) {
      char code[8];
      std::snprintf(code, sizeof code, "\\%03o", static_cast<unsigned char>(c));
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : code;
    }
  }
  return out;
}

}  // namespace crema
