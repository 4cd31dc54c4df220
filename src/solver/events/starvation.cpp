#include "solver/events/starvation.h"

namespace crema {
namespace {

constexpr double kMuch = 0.2;
constexpr int kDisplays = 3;
constexpr int64_t kIterations = 20;

}  // namespace

bool Starvation::begins(double share, int64_t iterations) {
  // The first display is that of the first iteration, for which nothing was made ahead.
  const bool counts = started_ && share > kMuch;
  started_ = true;
  displays_ = counts ? displays_ + 1 : 0;
  iterations_ = counts ? iterations_ + iterations : 0;
  if (told_ || displays_ < kDisplays || iterations_ < kIterations) return false;
  told_ = true;
  return true;
}

}  // namespace crema
