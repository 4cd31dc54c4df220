#include "device/memory_account.h"

#include <charconv>
#include <cstdint>
#include <limits>
#include <utility>

#include "base/error.h"

namespace crema {

void MemoryAccount::limit(size_t bytes, std::string source) {
  require(bytes > taken_, source, ": ", size_text(taken_), " are taken already; allow more");
  limit_ = bytes;
  source_ = std::move(source);
}

size_t MemoryAccount::left() const {
  if (!limited()) return std::numeric_limits<size_t>::max();
  return limit_ > taken_ ? limit_ - taken_ : 0;
}

void MemoryAccount::take(size_t bytes) {
  if (bytes > left()) {
    fail("out of memory: ", size_text(bytes), " requested, but of the ", size_text(limit_),
         " that are allowed (", source_, ") ", size_text(taken_),
         " are taken; allow more, or choose a smaller batch_size (with iter_size to make up for "
         "it)");
  }
  taken_ += bytes;
}

size_t allowed_memory(const std::string& text, size_t total) {
  struct Unit {
    const char* name;
    double bytes;
  };
  static constexpr Unit kUnits[] = {{"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
                                    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}};
  const auto wrong = [&] {
    fail("\"", text,
         "\" is not an amount of memory; expected a share of all, such as 0.8, or a size ",
         "with a unit (KB, MB, GB, KiB, MiB, GiB), such as 8000MiB");
  };
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || !(number > 0)) wrong();
  const std::string unit(trim(std::string_view(end, text.data() + text.size() - end)));
  if (unit.empty() && number == 1) return total;
  if (unit.empty() && number < 1) return static_cast<size_t>(number * static_cast<double>(total));
  for (const Unit& known : kUnits) {
    if (unit == known.name && number * known.bytes < 0x1p63)
      return static_cast<size_t>(number * known.bytes);
  }
  wrong();
  return 0;
}

}  // namespace crema
