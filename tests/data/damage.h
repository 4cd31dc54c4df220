// Damaging a file: the same damage for the same number.
#pragma once

#include <algorithm>
#include <random>
#include <string>

namespace crema::tests {

// `content` with one thing wrong: bits turned, a number overwritten, an end cut off, pages emptied,
// exchanged or written twice. A quarter of the small ones are in its first `head` bytes.
inline std::string damaged(const std::string& content, unsigned number, size_t page, size_t head) {
  std::mt19937_64 random(number);
  const auto below = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
  std::string bytes = content;
  const size_t pages = std::max<size_t>(1, bytes.size() / page);
  const size_t record_index = below(below(4) == 0 ? std::min(head, bytes.size()) : bytes.size());
  // The first bytes of a page give its type.
  const size_t in_header = std::min(below(pages) * page + below(32), bytes.size() - 1);
  const size_t one = below(pages) * page, other = below(pages) * page;
  const auto part = [&](size_t at) { return std::min(page, bytes.size() - at); };
  switch (below(8)) {
    case 0:
      bytes[record_index] ^= static_cast<char>(1 << below(8));
      break;
    case 1:
      bytes[in_header] ^= static_cast<char>(1 << below(8));
      break;
    case 2:
      for (size_t i = in_header; i < std::min(in_header + 2, bytes.size()); ++i)
        bytes[i] = static_cast<char>(random());
      break;
    case 3:
      for (size_t i = record_index; i < std::min(record_index + 8, bytes.size()); ++i)
        bytes[i] = static_cast<char>(below(2) ? 0xff : random());
      break;
    case 4:
      bytes.resize(record_index);
      break;
    case 5:
      std::fill_n(bytes.begin() + one, part(one), '\0');
      break;
    case 6:
      std::swap_ranges(bytes.begin() + one, bytes.begin() + one + std::min(part(one), part(other)),
                       bytes.begin() + other);
      break;
    default:
      std::copy_n(content.begin() + one, std::min(part(one), part(other)), bytes.begin() + other);
  }
  return bytes;
}

}  // namespace crema::tests
