#include "solver/divergence/loss_spikes.h"

#include <algorithm>
#include <cmath>

namespace crema {
namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::optional<double> LossSpikes::look_at(int64_t iteration, double loss) {
  constexpr double kForget = 0.02, kDeviations = 10 * 1.4826;
  if (!std::isfinite(loss)) return std::nullopt;  // DivergenceGuard judges that
  std::optional<double> usual;
  if (window_.size() >= kLeast && loss > mean_ + std::abs(mean_) / 4) {
    const double middle = median(window_);
    std::vector<double> deviations;
    for (const double other : window_) deviations.push_back(std::abs(other - middle));
    const double least = std::max(kDeviations * median(deviations), std::abs(middle) / 2);
    if (loss > middle + least) {
      const bool is_effect = last_ && iteration > *last_ && iteration - *last_ <= kPause;
      last_ = iteration;
      if (!is_effect && found_++ < kMost) usual = middle;
    }
  }
  mean_ = window_.empty() ? loss : mean_ + kForget * (loss - mean_);
  if (window_.size() < kWindow) {
    window_.push_back(loss);
  } else {
    window_[next_++ % kWindow] = loss;
  }
  return usual;
}

}  // namespace crema
