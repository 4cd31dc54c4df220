#include "solver/events/progress.h"

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

void Progress::start(int64_t iteration, double waited) {
  iteration_ = iteration;
  at_ = Clock::now();
  waited_ = waited;
}

Progress::Span Progress::display(int64_t iteration, double waited) {
  const Clock::time_point now = Clock::now();
  Span span;
  span.seconds = std::chrono::duration<double>(now - at_).count();
  const double divisor = span.seconds > 0 ? span.seconds : 1;
  span.iterations_per_second = static_cast<double>(iteration - iteration_) / divisor;
  span.waited = (waited - waited_) / divisor;
  span.starves = starvation_.begins(span.waited, iteration - iteration_);
  at_ = now;
  waited_ = waited;
  iteration_ = iteration;
  return span;
}

}  // namespace crema
