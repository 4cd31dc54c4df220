#include "tools/exchange/blob_differences.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/larger.h"
#include "exchange/quantize/quantized_node.h"
#include "net/plan/plan.h"

namespace crema {

namespace {

// Without the places of includes.
std::string place_of(const Node& node) {
  return node.place.where.substr(0, node.place.where.find(" ("));
}

bool has_detections(const Graph& graph, int id) {
  const int producer = graph.values[id].producer;
  return producer >= 0 && graph.nodes[producer].message.type() == "DetectionOutput";
}

// The rows of DetectionOutput: image, class, score, box.
constexpr size_t kNumbers = 7;

// How far two detections are from each other; those of another image or class are the farthest.
float distance_of(const float* a, const float* b) {
  if (a[0] != b[0] || a[1] != b[1]) return std::numeric_limits<float>::infinity();
  float distance = 0;
  for (size_t i = 2; i < kNumbers; ++i) distance = std::max(distance, std::abs(a[i] - b[i]));
  return distance;
}

// Their detections in the order of ours, each next to the nearest one: OpenCV orders by score, and of
// scores that are equal but for rounding every program may put either one first.
std::vector<float> in_our_order(const std::vector<float>& ours, const std::vector<float>& theirs) {
  const size_t rows = ours.size() / kNumbers;
  std::vector<float> ordered;
  std::vector<bool> used(rows);
  for (size_t i = 0; i < rows; ++i) {
    size_t nearest = rows;
    float least = 0;
    for (size_t j = 0; j < rows; ++j) {
      if (used[j]) continue;
      const float distance = distance_of(&ours[i * kNumbers], &theirs[j * kNumbers]);
      if (nearest < rows && !(distance < least)) continue;
      nearest = j;
      least = distance;
    }
    used[nearest] = true;
    const auto row = theirs.begin() + static_cast<std::ptrdiff_t>(nearest * kNumbers);
    ordered.insert(ordered.end(), row, row + kNumbers);
  }
  return ordered;
}

// How a layer that reads this value rounds it.
std::optional<QuantizedValues> rounding_of(const Graph& graph, int id) {
  for (const Node& node : graph.nodes) {
    if (std::find(node.bottoms.begin(), node.bottoms.end(), id) == node.bottoms.end()) continue;
    const std::optional<LinearQuantization> quantization = quantization_of(node, graph);
    if (quantization && quantization->x) return quantization->x;
  }
  return std::nullopt;
}

float integer_of(double value, const QuantizedValues& rounding) {
  const float n = std::rint(static_cast<float>(value) / rounding.step);
  return std::clamp(n, rounding.low, rounding.high);
}

}  // namespace

BlobDifferences::BlobDifferences(Net& net, const std::map<int, std::string>& values)
    : graph_(net.graph()), magnitudes_(values.size()) {
  for (const auto& [id, name] : values) {
    const Value& value = graph_.values[id];
    ids_.push_back(id);
    blobs_.push_back({value.producer < 0 ? "" : place_of(graph_.nodes[value.producer]), name,
                      net.plan().value(id).shape().brief(), value.output, 0, 0});
    integers_.push_back({rounding_of(graph_, id)});
  }
}

void BlobDifferences::add(size_t blob, const std::vector<float>& ours,
                          const std::vector<float>& theirs) {
  VerifiedBlob& found = blobs_[blob];
  if (ours.size() != theirs.size()) {
    found.largest = std::numeric_limits<double>::quiet_NaN();
    if (found.shape.find(" (here ") == std::string::npos)
      found.shape += cat(" (here ", ours.size(), " values, there ", theirs.size(), ")");
    return;
  }
  const bool detections = has_detections(graph_, ids_[blob]) && ours.size() % kNumbers == 0;
  const std::vector<float> ordered = detections ? in_our_order(ours, theirs) : theirs;
  for (size_t i = 0; i < ours.size(); ++i) {
    const double a = ours[i], b = ordered[i];
    if (std::isfinite(a)) magnitudes_[blob] = std::max(magnitudes_[blob], std::abs(a));
    if (Integers& integers = integers_[blob]; integers.rounding) {
      integers.equal += integer_of(a, *integers.rounding) == integer_of(b, *integers.rounding);
      ++integers.all;
    }
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    found.largest = larger_or_nan(found.largest, std::abs(a - b));
  }
}

std::vector<VerifiedBlob> BlobDifferences::take() {
  for (size_t i = 0; i < blobs_.size(); ++i) {
    VerifiedBlob& blob = blobs_[i];
    blob.relative = blob.largest == 0 ? 0 : blob.largest / std::max(magnitudes_[i], 1e-30);
    if (integers_[i].all > 0)
      blob.equal_integers =
          static_cast<double>(integers_[i].equal) / static_cast<double>(integers_[i].all);
  }
  return std::move(blobs_);
}

}  // namespace crema
