#include "data/transforms/mixture.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace crema {
namespace {

// The random streams for a batch and for a sample; no epoch has these numbers.
constexpr uint64_t kOfBatches = ~uint64_t{0}, kOfSamples = ~uint64_t{1};

}  // namespace

// From two uniform numbers and a sign (Devroye, "Random variate generation in one line of code",
// 1996).
float draw_beta(float alpha, Rng& rng) {
  const double u = rng.between(0, 1), v = rng.between(0, 1);
  const double cosine = std::cos(6.283185307179586 * v);
  const double radius = std::pow(u, -1.0 / alpha) - 1;
  const double distance = 0.5 / std::sqrt(1 + 1 / (radius * cosine * cosine));
  return static_cast<float>(rng.chance(0.5f) ? 0.5 + distance : 0.5 - distance);
}

Mixture::Mixture(const AugmentParameter& parameter, const std::string& type, const Random& random)
    : parameter_(parameter), random_(random) {
  constexpr int kMostClasses = 1 << 24;  // the labels that a float can tell apart
  if (!any()) return;
  require(parameter.has_classes(), "augment has ", name(), ", but no `classes`: the label top of ",
          type, " gets a share for each class, so their number must be known");
  require(parameter.classes() >= 2 && parameter.classes() <= kMostClasses,
          "augment has classes: ", parameter.classes(), "; ", name(), " mixes labels of 2 to ",
          kMostClasses, " classes");
}

void Mixture::check(const Shape& values, const Shape& label) const {
  require(!any() || label.count() == 1, "it has ", label.count(), " labels (", label.brief(),
          "); augment has ", name(), ", which needs one for each sample, its class");
  require(!cutmix() || values.axes() >= 3, "its shape is ", values.brief(),
          ", which is no image; augment has cutmix, which cuts rectangles; mixup mixes any values");
}

void Mixture::write_shares(float label, float* shares) const {
  require(label >= 0 && label < static_cast<float>(classes()) && label == std::trunc(label),
          "its label ", label, " is no class: augment has classes: ", classes(), ", and ", name(),
          " mixes labels from 0 to ", classes() - 1);
  std::fill_n(shares, classes(), 0.f);
  shares[static_cast<int64_t>(label)] = 1;
}

// A reflection of the batch: sample i is mixed with sample r - i. In a batch of an even size an odd
// r leaves no sample alone.
int64_t Mixture::partner(int64_t batch, int64_t in_batch, int64_t batch_size) const {
  Rng rng({random_.seed, mix(mix(random_.stream, kOfBatches), static_cast<uint64_t>(batch))});
  const int64_t r = batch_size % 2 == 0 ? 2 * rng.pick(batch_size / 2) + 1 : rng.pick(batch_size);
  return (r - in_batch + batch_size) % batch_size;
}

Mixture::Part Mixture::draw(int64_t position, int64_t height, int64_t width) const {
  Rng rng({random_.seed, mix(mix(random_.stream, kOfSamples), static_cast<uint64_t>(position))});
  Part part;
  const bool cut = cutmix() && (!mixup() || rng.chance(0.5f));
  const float probability =
      cut ? parameter_.cutmix().probability() : parameter_.mixup().probability();
  if (!rng.chance(probability)) return part;
  part.share = draw_beta(cut ? parameter_.cutmix().alpha() : parameter_.mixup().alpha(), rng);
  if (!cut) return part;
  const float side = std::sqrt(1 - part.share);
  const int64_t rows = std::lround(side * static_cast<float>(height)),
                columns = std::lround(side * static_cast<float>(width));
  const int64_t top = rng.pick(height) - rows / 2, left = rng.pick(width) - columns / 2;
  part.cut = true;
  part.top = std::max<int64_t>(0, top);
  part.left = std::max<int64_t>(0, left);
  part.bottom = std::min(height, top + rows);
  part.right = std::min(width, left + columns);
  const int64_t area = (part.bottom - part.top) * (part.right - part.left);
  part.share = 1 - static_cast<float>(area) / static_cast<float>(height * width);
  return part;
}

// Values that are equal in both do not change.
void Mixture::Part::apply(float* own, const float* partners, int64_t row, int64_t count) const {
  if (!cut) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) own[i] = partners[i] + share * (own[i] - partners[i]);
  } else if (row >= top && row < bottom) {
    std::copy(partners + left, partners + right, own + left);
  }
}

void Mixture::mix_pair(const MixedSample& one, const MixedSample& other, const Shape& shape) const {
  const int axes = shape.axes();
  const int64_t height = axes > 1 ? shape[axes - 2] : 1, width = axes > 0 ? shape[axes - 1] : 1;
  const Part of_one = draw(one.position, height, width),
             of_other = draw(other.position, height, width);
  if (of_one.share == 1 && of_other.share == 1) return;
  constexpr int64_t kRun = 1024;  // stays in the first-level cache
  const int64_t run = of_one.cut || of_other.cut ? width : kRun, count = shape.count();
  std::vector<float> before(static_cast<size_t>(std::max(run, classes())));
  for (int64_t at = 0, line = 0; at < count; at += run, ++line) {
    const int64_t row = line % height, values = std::min(run, count - at);
    std::copy_n(one.values + at, values, before.data());
    of_one.apply(one.values + at, other.values + at, row, values);
    of_other.apply(other.values + at, before.data(), row, values);
  }
  const Part labels_of_one{of_one.share}, labels_of_other{of_other.share};
  std::copy_n(one.shares, classes(), before.data());
  labels_of_one.apply(one.shares, other.shares, 0, classes());
  labels_of_other.apply(other.shares, before.data(), 0, classes());
}

}  // namespace crema
