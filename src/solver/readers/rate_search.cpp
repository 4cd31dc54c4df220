#include "solver/readers/rate_search.h"

#include <algorithm>
#include <cmath>

namespace crema {
namespace {

constexpr double kKept = 0.9;      // of the running mean in each iteration
constexpr double kDiverged = 4;    // times the smallest mean
constexpr size_t kFirstMeans = 5;  // too few losses for a smallest mean
constexpr double kNoise = 4;       // deviations from the smoothed losses that may be chance
constexpr double kBelow = 10;      // how far beneath the minimum the proposal is

// The mean over the neighbours, the farther the less; losses that are no number count nothing.
double smoothed_at(const std::vector<RatePoint>& points, size_t at, size_t reach) {
  double sum = 0, weights = 0;
  const size_t begin = at > reach ? at - reach : 0, end = std::min(points.size(), at + reach + 1);
  for (size_t i = begin; i < end; ++i) {
    if (!std::isfinite(points[i].loss)) continue;
    const double distance = static_cast<double>(i > at ? i - at : at - i);
    const double weight = 1 - distance / static_cast<double>(reach + 1);
    sum += weight * points[i].loss;
    weights += weight;
  }
  return weights > 0 ? sum / weights : NAN;
}

// By how much losses differ from the smoothed ones: a fall of less may be chance.
double noise_before(const std::vector<RatePoint>& points, size_t end) {
  double squares = 0;
  for (size_t i = 0; i <= end; ++i) {
    const double difference = points[i].loss - points[i].smoothed;
    if (std::isfinite(difference)) squares += difference * difference;
  }
  return kNoise * std::sqrt(squares / static_cast<double>(end + 1));
}

}  // namespace

void RateSearch::read(const Event& event) {
  if (const auto* display = std::get_if<event::Display>(&event)) loss_ = display->loss;
  const auto* rate = std::get_if<event::LearningRate>(&event);
  if (!rate || diverged_) return;
  points_.push_back({rate->rate, loss_, loss_});
  mean_ = kKept * mean_ + (1 - kKept) * loss_;
  weight_ = kKept * weight_ + (1 - kKept);
  const double mean = mean_ / weight_;
  if (points_.size() <= kFirstMeans) {
    best_ = mean;
  } else {
    best_ = std::min(best_, mean);
  }
  // A loss that is negative somewhere has no multiples.
  diverged_ = !std::isfinite(loss_) || (best_ > 0 && mean > kDiverged * best_);
}

RateProposal rate_proposal(std::vector<RatePoint>* points) {
  std::vector<RatePoint>& all = *points;
  const size_t reach = std::max<size_t>(1, all.size() / 20);
  for (size_t i = 0; i < all.size(); ++i) all[i].smoothed = smoothed_at(all, i, reach);
  RateProposal found;
  if (all.empty()) return found;
  size_t lowest = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (std::isfinite(all[i].loss) && all[i].smoothed < all[lowest].smoothed) lowest = i;
  }
  found.minimum = all[lowest].rate;
  found.loss = all[lowest].smoothed;
  found.at_end = lowest + reach >= all.size();
  double slope = 0;  // rates rise by a constant factor: per point is per logarithm of the rate
  for (size_t i = reach; i + reach < all.size() && i <= lowest; ++i) {
    const double fall = all[i + reach].smoothed - all[i - reach].smoothed;
    if (fall < slope) slope = fall, found.steepest = all[i].rate;
  }
  if (all[0].smoothed - found.loss > noise_before(all, lowest))
    found.proposed = found.minimum / kBelow;
  return found;
}

}  // namespace crema
