#include "solver/test/average_precision.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"

namespace crema {
namespace {

// After each detection, best first.
struct Curve {
  std::vector<float> precision, recall;
};

Curve curve_of(std::vector<RankedDetection> detections, int64_t objects) {
  std::stable_sort(
      detections.begin(), detections.end(),
      [](const RankedDetection& a, const RankedDetection& b) { return a.score > b.score; });
  Curve curve;
  int64_t right = 0, all = 0;
  for (const RankedDetection& detection : detections) {
    right += detection.right;
    ++all;
    curve.precision.push_back(static_cast<float>(right) / static_cast<float>(all));
    curve.recall.push_back(static_cast<float>(right) / static_cast<float>(objects));
  }
  return curve;
}

// The mean over 11 recalls of the best precision at that recall or more.
float eleven_points(const Curve& curve) {
  float sum = 0;
  for (int point = 10; point >= 0; --point) {
    float best = 0;
    for (size_t i = 0; i < curve.recall.size(); ++i) {
      if (curve.recall[i] >= point / 10.) best = std::max(best, curve.precision[i]);
    }
    sum += best / 11;
  }
  return sum;
}

// Smaller steps of recall are ignored.
constexpr float kMinStep = 1e-6f;

// The area below the best precision at each recall or more.
float area_of_best(const Curve& curve) {
  float recall = curve.recall.back(), best = curve.precision.back(), area = 0;
  for (size_t i = curve.recall.size() - 1; i-- > 0;) {
    best = std::max(best, curve.precision[i]);
    const float step = std::abs(recall - curve.recall[i]);
    if (step > kMinStep) area += best * step;
    recall = curve.recall[i];
  }
  return area + recall * best;
}

float area_below(const Curve& curve) {
  float recall = 0, area = 0;
  for (size_t i = 0; i < curve.recall.size(); ++i) {
    const float step = std::abs(curve.recall[i] - recall);
    if (step > kMinStep) area += curve.precision[i] * step;
    recall = curve.recall[i];
  }
  return area;
}

struct Version {
  const char* name;
  float (*of)(const Curve&);
};
constexpr std::array<Version, 3> kVersions = {
    {{"11point", eleven_points}, {"MaxIntegral", area_of_best}, {"Integral", area_below}}};

const Version& version_of(const std::string& name) {
  for (const Version& version : kVersions) {
    if (name == version.name) return version;
  }
  fail("ap_version is \"", name, "\", but must be \"11point\", \"MaxIntegral\" or \"Integral\"");
}

}  // namespace

void check_precision_version(const std::string& version) { version_of(version); }

float average_precision(std::vector<RankedDetection> detections, int64_t objects,
                        const std::string& version) {
  const Version& how = version_of(version);
  if (detections.empty() || objects == 0) return 0;
  return how.of(curve_of(std::move(detections), objects));
}

}  // namespace crema
