#include "exchange/quantize/quantize.h"

#include <algorithm>
#include <cmath>

#include "proto/layer.pb.h"
#include "proto/params/quantization.pb.h"

namespace crema {
namespace {

constexpr int kBottomBits = 8;

// The largest integer.
float largest_weight(int bits) { return static_cast<float>((1 << (bits - 1)) - 1); }

std::vector<float> scales_of_rows(const WeightBlob& weights, int bits) {
  const int64_t rows = weights.shape[0], size = weights.shape.count(1);
  std::vector<float> largest;
  for (int64_t row = 0; row < rows; ++row) {
    float most = 0;
    for (int64_t i = row * size; i < (row + 1) * size; ++i)
      most = std::max(most, std::abs(weights.values[i]));
    largest.push_back(most);
  }
  // A row of zeros has the scale of the others.
  const float all = *std::max_element(largest.begin(), largest.end());
  std::vector<float> scales;
  for (const float most : largest) scales.push_back(largest_weight(bits) / (most > 0 ? most : all));
  return scales;
}

float rounded_weight(float value, float step, float largest) {
  return step * std::clamp(std::rint(value / step), -largest - 1, largest);
}

// What rounding adds to each result in the mean. means: of the channels of the bottom, exact and rounded.
// Positions outside an image count as if they had the mean.
std::vector<double> mean_shifts(const WeightBlob& weights, const LayerSteps& steps,
                                const std::vector<double>& means,
                                const std::vector<double>& rounded) {
  std::vector<double> shifts;
  const int64_t rows = weights.shape[0], size = weights.shape.count(1),
                channels = static_cast<int64_t>(means.size());
  // A convolution's axis 1 has the channels of a group; another layer's may have those of all positions.
  const bool is_dense = weights.shape.axes() == 2;
  const int64_t of_row = is_dense ? channels : weights.shape[1], columns = size / of_row,
                groups = channels / of_row;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t first = row / (rows / groups) * of_row;
    double shift = 0;
    for (int64_t i = 0; i < size; ++i) {
      const float w = weights.values[row * size + i];
      const int64_t channel = first + i / columns;
      shift += rounded_weight(w, 1 / steps.weight_scales[row], largest_weight(steps.weight_bits)) *
                   rounded[channel] -
               w * means[channel];
    }
    shifts.push_back(shift);
  }
  return shifts;
}

// Less the shift, as a multiple of the steps' product.
std::vector<float> integer_bias(std::vector<float> bias, const std::vector<double>& shifts,
                                const LayerSteps& steps) {
  for (size_t row = 0; row < bias.size(); ++row) {
    const float step = (1 / steps.scale) * (1 / steps.weight_scales[row]);
    const double wanted = bias[row] - (shifts.empty() ? 0 : shifts[row]);
    bias[row] = static_cast<float>(std::rint(wanted / step)) * step;
  }
  return bias;
}

}  // namespace

std::vector<LayerSteps> choose_steps(Net& net, const std::vector<LayerCalibration>& layers,
                                     RangeRule rule,
                                     const std::map<std::string, TrainedRange>& trained,
                                     int weight_bits, int64_t batches, const BatchFeed& feed) {
  const NetWeights weights = weights_of(net);
  std::vector<LayerSteps> all;
  std::vector<QuantizedValues> bottoms;
  for (const LayerCalibration& layer : layers) {
    LayerSteps steps;
    steps.layer = layer.layer;
    steps.weight_bits = weight_bits;
    const auto known = trained.find(layer.layer);
    const bool is_trained = known != trained.end();
    steps.has_sign = is_trained ? known->second.has_sign : layer.bottom.has_negative();
    const float high = steps.bottom().high;
    steps.largest = layer.bottom.largest();
    steps.range =
        is_trained ? known->second.range : layer.bottom.range(rule, static_cast<int>(high));
    steps.clipped = layer.bottom.share_above(steps.range);
    if (steps.range > 0) steps.scale = high / steps.range;
    const auto blobs = weights.find(layer.layer);  // shared weights are with their first layer
    if (blobs != weights.end()) steps.weight_scales = scales_of_rows(blobs->second[0], weight_bits);
    bottoms.push_back(steps.bottom());
    all.push_back(std::move(steps));
  }
  const std::vector<std::vector<double>> rounded = rounded_means(net, batches, feed, bottoms);
  std::vector<LayerSteps> chosen;
  for (size_t i = 0; i < all.size(); ++i) {
    LayerSteps& steps = all[i];
    const auto usable = [](float scale) { return scale > 0 && std::isfinite(scale); };
    if (steps.range == 0 || steps.weight_scales.empty() || !usable(steps.scale) ||
        !std::all_of(steps.weight_scales.begin(), steps.weight_scales.end(), usable))
      continue;
    const std::vector<WeightBlob>& blobs = weights.at(steps.layer);
    if (blobs.size() > 1) {
      std::vector<double> shifts;
      if (!layers[i].means.empty() && trained.count(steps.layer) == 0)
        shifts = mean_shifts(blobs[0], steps, layers[i].means, rounded[i]);
      steps.bias = integer_bias(blobs[1].values, shifts, steps);
    }
    chosen.push_back(std::move(steps));
  }
  return chosen;
}

void apply_steps(const std::vector<LayerSteps>& steps, NetParameter* net, NetWeights* weights) {
  for (const LayerSteps& one : steps) {
    for (LayerParameter& layer : *net->mutable_layer()) {
      if (layer.name() != one.layer) continue;
      QuantizationParameter& p = *layer.mutable_quantization_param();
      p.Clear();
      p.set_bw_layer_in(kBottomBits);
      p.set_bw_params(static_cast<uint32_t>(one.weight_bits));
      p.add_scale_in(one.scale);
      if (one.has_sign) p.set_is_negative_input(true);
      for (const float scale : one.weight_scales) p.add_scale_params(scale);
    }
    if (!one.bias.empty()) weights->at(one.layer)[1].values = one.bias;
  }
}

}  // namespace crema
