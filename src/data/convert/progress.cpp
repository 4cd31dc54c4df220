#include "data/convert/progress.h"

#include <cmath>

#include "base/strings.h"

namespace crema {
namespace {

constexpr double kSeconds = 5;  // between two lines

// "0:07", "1:02:03".
std::string clock_text(double seconds) {
  const auto all = static_cast<int64_t>(std::llround(seconds));
  const auto two = [](int64_t number) { return cat(number < 10 ? "0" : "", number); };
  const std::string minutes = all < 3600 ? cat(all / 60) : cat(all / 3600, ":", two(all / 60 % 60));
  return cat(minutes, ":", two(all % 60));
}

}  // namespace

std::string Progress::last(int64_t written) { return cat("Processed ", written, " files."); }

std::string Progress::line(double seconds, int64_t done, int64_t written) {
  if (seconds - said_ < kSeconds || done == 0 || done == total_) return "";
  said_ = seconds;
  const double rate = static_cast<double>(done) / seconds;
  const double shown = rate < 10 ? std::round(10 * rate) / 10 : std::round(rate);
  return cat(last(written), " ", shown, " a second, ",
             clock_text(static_cast<double>(total_ - done) / rate), " left.");
}

}  // namespace crema
