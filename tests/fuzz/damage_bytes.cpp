#include <algorithm>
#include <cstring>

#include "fuzz/damage.h"

namespace crema::tests {
namespace {

// Values at which sizes, counts and offsets break.
uint64_t odd_number(Dice& dice, size_t size) {
  static const std::vector<uint64_t> numbers = {0,
                                                1,
                                                2,
                                                7,
                                                8,
                                                127,
                                                128,
                                                255,
                                                256,
                                                4095,
                                                4096,
                                                0x7fff,
                                                0x8000,
                                                0xffff,
                                                0x10000,
                                                0x7fffffff,
                                                0x80000000,
                                                0xffffffff,
                                                0x100000000,
                                                uint64_t{1} << 44,
                                                uint64_t{1} << 62,
                                                0x7fffffffffffffff,
                                                0x8000000000000000,
                                                0xfffffffffffffff0,
                                                0xffffffffffffffff,
                                                0x7f800000,
                                                0x7fc00000};
  const uint64_t number = dice.one_in(4) ? dice.word() >> dice.below(64) : dice.pick(numbers);
  return size < 8 ? number & ((uint64_t{1} << (8 * size)) - 1) : number;
}

void write_number(Dice& dice, std::string& bytes) {
  const size_t size = size_t{1} << dice.below(4);
  if (bytes.size() < size) return;
  size_t at = dice.below(bytes.size() - size + 1);
  if (!dice.one_in(4)) at -= at % size;
  uint64_t number = 0;
  std::memcpy(&number, bytes.data() + at, size);
  if (dice.one_in(3)) {
    number += dice.below(33) - 16;  // one further, or one page back
  } else {
    number = odd_number(dice, size);
  }
  if (dice.one_in(8)) number = __builtin_bswap64(number) >> (64 - 8 * size);
  std::memcpy(bytes.data() + at, &number, size);
}

}  // namespace

void damage_bytes(Dice& dice, std::string& bytes, const std::string& other) {
  const size_t times = 1 + dice.below(dice.one_in(4) ? 16 : 3);
  for (size_t i = 0; i < times && !bytes.empty(); ++i) {
    const size_t at = dice.below(bytes.size());
    const size_t length =
        dice.below(std::min<size_t>(bytes.size() - at, dice.one_in(8) ? 65536 : 64) + 1);
    switch (dice.below(12)) {
      case 0:
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << dice.below(8)));
        break;
      case 2:
        bytes[at] = static_cast<char>(dice.word());
        break;
      case 3:
        if (dice.one_in(4)) bytes.resize(at);
        break;
      case 4:
        bytes.erase(at, length);
        break;
      case 5:
        bytes.insert(dice.below(bytes.size() + 1), bytes.substr(at, length));
        break;
      case 6:
        for (size_t k = 0; k < length; ++k) bytes[at + k] = dice.one_in(2) ? '\0' : '\xff';
        break;
      case 7:
        if (!other.empty()) {
          const size_t from = dice.below(other.size());
          const std::string piece = other.substr(from, length + 1);
          if (dice.one_in(2)) {
            bytes.insert(at, piece);
          } else {
            bytes.replace(at, std::min(piece.size(), bytes.size() - at), piece);
          }
        }
        break;
      default:
        write_number(dice, bytes);
    }
  }
}

}  // namespace crema::tests
