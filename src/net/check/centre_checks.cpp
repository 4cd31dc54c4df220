// Checks how far the data are from a mean of zero: the gradients of a first layer that sees large
// values of one sign point alike, and the same rate is too high for it.
#include <cmath>

#include "layers/layer_facts.h"
#include "net/check/checks.h"
#include "net/check/moments.h"

namespace crema {

Moments moments_of(const std::vector<SourceFacts::Channel>& channels,
                   const TransformationParameter& transform) {
  double count = 0, distance = 0, variance = 0, stored = 0, sum = 0;
  const int means = transform.mean_value_size();
  for (size_t c = 0; c < channels.size(); ++c) {
    const SourceFacts::Channel& channel = channels[c];
    if (channel.count == 0) continue;
    const double mean = channel.sum / channel.count;
    const double taken =
        means == 0 ? 0 : transform.mean_value(means == 1 ? 0 : static_cast<int>(c));
    count += channel.count;
    stored += channel.sum;
    sum += channel.count * (mean - taken);
    distance += channel.count * (mean - taken) * (mean - taken);
    variance += channel.squares - mean * channel.sum;
  }
  if (count == 0) return {};
  const double scale = std::abs(double{transform.scale()});
  return {std::copysign(scale * std::sqrt(distance / count), sum),
          scale * std::sqrt(std::max(0.0, variance / count)), transform.scale() * sum / count,
          stored / count};
}

void check_centre(const CheckedNet& net, int layer, const SourceFacts& facts, double rate,
                  Findings* findings) {
  constexpr double kFar = 2.5;  // photographs as they are have a mean of two deviations
  const LayerParameter& source = net.layer(layer);
  const TransformationParameter& transform = source.transform_param();
  const int means = transform.mean_value_size();
  if (!net.training() || facts.values.empty() || transform.has_mean_file() ||
      source.top_size() == 0)
    return;
  if (means > 1 && means != static_cast<int>(facts.values.size())) return;  // an error elsewhere
  bool learns = false;
  for (const int reader : net.readers_of(layer, source.top(0))) {
    const LayerFacts layer_facts = facts_of(net.layer(reader).type());
    if (layer_facts.centres) return;
    learns |= layer_facts.kind == LayerKind::convolution || layer_facts.kind == LayerKind::dense;
  }
  const Moments moments = moments_of(facts.values, transform);
  if (!learns || moments.deviation == 0 || std::abs(moments.mean) <= kFar * moments.deviation)
    return;
  const std::string field = means > 0 ? "transform_param.mean_value" : "transform_param";
  add(findings, Severity::warning, net.where(layer, field), "layer \"", source.name(),
      "\": the data are far from a mean of 0: they are ", static_cast<float>(moments.mean),
      " on average, with a standard deviation of ", static_cast<float>(moments.deviation),
      ", after transform_param. The first layer's gradients all point the same way then, and "
      "base_lr ",
      rate, " may be too high for them: write transform_param { mean_value: ",
      std::lround(moments.stored_mean),
      " } (subtracted before scale), begin the net with BatchNorm, or lower base_lr (crema lr_find "
      "measures it)");
}

}  // namespace crema
