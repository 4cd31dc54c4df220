#include "fuzz/random_nets/rounding.h"

#include <cmath>
#include <cstring>

#include "base/error.h"

namespace crema::tests {
namespace {

// One run shows only a part of what rounding can do. The first check is strict; if it finds
// something, more runs decide, with a smaller part.
constexpr double kFirstFactor = 8, kFactor = 32;
// Some kernels add up a few hundred values one after another.
constexpr double kTerms = 256;
// For float32: so large that noise changes every decision that rounding may change.
constexpr double kNoise = 4e-6;
constexpr int kDirections = 2;
// What one decision may change in a blob, relative to the changes by decisions that noise affected.
constexpr double kJump = 5;

const std::vector<double>* find(const Outcome& outcome, const std::string& name) {
  for (const Values& values : outcome) {
    if (values.name == name) return &values.values;
  }
  return nullptr;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

double norm_of(const std::vector<double>& a) {
  double sum = 0;
  for (const double value : a) sum += value * value;
  return std::sqrt(sum);
}

size_t worst(const std::vector<double>& a, const std::vector<double>& b) {
  size_t at = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double now = std::abs(a[i] - b[i]);
    if (!(now <= std::abs(a[at] - b[at]))) at = i;
  }
  return at;
}

Mismatch mismatch(const std::string& blob, const std::vector<double>& seen,
                  const std::vector<double>& expected, double tolerance) {
  require(seen.size() == expected.size(), blob, " has ", seen.size(), " values, not ",
          expected.size());
  const size_t at = worst(seen, expected);
  return {blob, at, seen[at], expected[at], distance(seen, expected), tolerance, norm_of(expected)};
}

}  // namespace

std::string Mismatch::str() const {
  return cat(blob, "[", index, "] is ", value, ", expected ", expected, "; distance of the blob ",
             difference, ", allowed ", tolerance, ", norm ", norm);
}

std::optional<Mismatch> different_bits(const Outcome& seen, const Outcome& expected) {
  int compared = 0;
  for (const Values& values : seen) {
    const std::vector<double>* const other = find(expected, values.name);
    if (!other) continue;
    ++compared;
    if (values.values.size() != other->size() ||
        std::memcmp(values.values.data(), other->data(), 8 * other->size()) != 0)
      return mismatch(values.name, values.values, *other, 0);
  }
  require(compared > 0, "two outcomes have no value in common");
  return {};
}

const Outcome& Rounding::exact() {
  if (exact_.empty()) exact_ = run_trial(net_, plain_way(DType::f64));
  return exact_;
}

const std::vector<Rounding::Noisy>& Rounding::noisy() {
  for (uint64_t seed = noisy_.size(); seed < kDirections; ++seed) {
    Way way = plain_way(DType::f64);
    way.noise = kNoise;
    way.noise_seed = seed + 1;
    Noisy both;
    both.up = run_trial(net_, way);
    way.noise = -kNoise;
    both.down = run_trial(net_, way);
    noisy_.push_back(std::move(both));
  }
  return noisy_;
}

const std::vector<Outcome>& Rounding::rounded() {
  for (uint64_t seed = rounded_.size(); seed < kDirections; ++seed) {
    Way way = plain_way(DType::f32);
    way.noise = kFloat32;
    way.noise_seed = seed + 1;
    rounded_.push_back(run_trial(net_, way));
  }
  return rounded_;
}

const std::vector<Outcome>& Rounding::noisy_by(double unit) {
  if (unit != unit_) noisy_by_unit_.clear();
  unit_ = unit;
  for (uint64_t seed = noisy_by_unit_.size(); seed < kDirections; ++seed) {
    Way way = plain_way(DType::f64);
    way.noise = unit;
    way.noise_seed = seed + 1;
    noisy_by_unit_.push_back(run_trial(net_, way));
  }
  return noisy_by_unit_;
}

std::vector<Mismatch> Rounding::all_too_far(const Outcome& seen, double unit, bool with_noise) {
  if (plain_.empty()) plain_ = run_trial(net_, plain_way(DType::f32));
  std::vector<Mismatch> found;
  int compared = 0;
  for (const Values& values : seen) {
    const std::vector<double>* const right = find(exact(), values.name);
    if (!right) continue;
    ++compared;
    const std::vector<double>* const plain = find(plain_, values.name);
    require(plain && plain->size() == right->size(), values.name, " of float32 is missing");
    // Out of float32's range.
    if (!std::isfinite(norm_of(*plain))) continue;
    const double factor = with_noise ? kFactor : kFirstFactor;
    double tolerance = 2 * factor * unit * norm_of(*right) + factor * distance(*plain, *right);
    if (with_noise && unit <= kFloat32) {
      tolerance += kTerms * unit * norm_of(*right);
      for (const Outcome& outcome : rounded())
        tolerance += kFactor * distance(*find(outcome, values.name), *right);
      for (const Noisy& noisy : this->noisy()) {
        for (const Outcome* outcome : {&noisy.up, &noisy.down})
          tolerance += kFactor * unit / kNoise * distance(*find(*outcome, values.name), *right);
      }
    } else if (with_noise) {
      // Values that are zero except for rounding, such as the gradient of a bias before a
      // BatchNorm, do not change with noise in the data.
      tolerance += kFirstFactor * unit / kFloat32 * distance(*plain, *right);
      for (const Outcome& outcome : noisy_by(unit))
        tolerance += kFactor * distance(*find(outcome, values.name), *right);
    }
    Mismatch here = mismatch(values.name, values.values, *right, tolerance);
    if (!(here.difference <= tolerance)) found.push_back(here);
  }
  require(compared > 0, "an outcome has no value of the exact one");
  return found;
}

std::optional<Mismatch> Rounding::too_far(const Outcome& seen, double unit) {
  if (unit <= kFloat32 && all_too_far(seen, unit, false).empty()) return {};
  const std::vector<Mismatch> all = all_too_far(seen, unit, true);
  if (all.empty()) return {};
  // The first in order is the nearest to the cause.
  return all.front();
}

bool Rounding::explained_by_jumps(const Outcome& seen, double unit) {
  if (unit > kFloat32) return explained_by_noise(seen, unit);
  for (const Mismatch& mismatch : all_too_far(seen, kFloat32, true)) {
    const std::vector<double>& middle = *find(exact(), mismatch.blob);
    double bend = 0;
    for (const Noisy& noisy : this->noisy()) {
      std::vector<double> ends = *find(noisy.up, mismatch.blob), twice = middle;
      const std::vector<double>& down = *find(noisy.down, mismatch.blob);
      for (size_t i = 0; i < ends.size(); ++i) {
        ends[i] += down[i];
        twice[i] *= 2;
      }
      bend = std::max(bend, distance(ends, twice));
    }
    if (!(mismatch.difference <= kJump * bend)) return false;
  }
  return true;
}

// In 16 bits decisions are as frequent as noise of that size makes them.
bool Rounding::explained_by_noise(const Outcome& seen, double unit) {
  std::vector<Mismatch> open = all_too_far(seen, unit, true);
  constexpr uint64_t kTries = 16;
  for (uint64_t seed = kDirections; seed < kDirections + kTries && !open.empty(); ++seed) {
    Way way = plain_way(DType::f64);
    way.noise = 2 * unit;
    way.noise_seed = seed + 1;
    const Outcome outcome = run_trial(net_, way);
    std::erase_if(open, [&](const Mismatch& mismatch) {
      const double moved = distance(*find(outcome, mismatch.blob), *find(exact(), mismatch.blob));
      return mismatch.difference <= kJump * moved;
    });
  }
  return open.empty();
}

}  // namespace crema::tests
