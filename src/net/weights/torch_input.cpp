#include "net/weights/torch_input.h"

#include <cmath>

#include "base/error.h"
#include "base/visible.h"

namespace crema {
namespace {

constexpr int kChannels = 3;

// Pads with values that are not pixels: they are 0 in the net's units, and in PyTorch's only if
// both subtract the same.
bool pads(const LayerParameter& layer) {
  const ConvolutionParameter& p = layer.convolution_param();
  if (p.pad_h() > 0 || p.pad_w() > 0) return true;
  for (const auto pad : p.pad()) {
    if (pad > 0) return true;
  }
  return false;
}

// What PyTorch has instead of a channel c here, in its order R, G, B: z = factor * y + offset, for
// y = (x - input.mean) * scale and z = (x - 255 mean) / (255 std).
struct InputUnits {
  double factor[kChannels], offset[kChannels];
  bool shifted = false;
};

// Checks that the layer can take them.
InputUnits input_units(const LayerParameter& layer, const Shape& shape, const WeightNames& names,
                       const TorchInput& input, bool has_bias) {
  const bool fits = layer.type() == "Convolution" && shape.axes() == 4 && shape[1] == kChannels;
  require(fits, input.where, ": layer \"", visible(layer.name()), "\" of type ", layer.type(),
          " reads images; means and deviations of PyTorch go into a Convolution of three channels "
          "alone. A map without mean and std takes weights as they are");
  InputUnits units;
  for (int channel = 0; channel < kChannels; ++channel) {
    const double deviation = 255.0 * names.std[channel];
    const double mean = input.mean[kChannels - 1 - channel];
    units.factor[channel] = 1 / (deviation * input.scale);
    units.offset[channel] = (mean - 255.0 * names.mean[channel]) / deviation;
    // A mean is written with six digits.
    if (std::abs(units.offset[channel]) * deviation < 1e-3) units.offset[channel] = 0;
    units.shifted = units.shifted || units.offset[channel] != 0;
  }
  require(!units.shifted || has_bias, input.where, ": the net subtracts ", input.mean[0], ", ",
          input.mean[1], ", ", input.mean[2], ", PyTorch's ", 255 * names.mean[2], ", ",
          255 * names.mean[1], ", ", 255 * names.mean[0], " (B, G, R), and layer \"",
          visible(layer.name()),
          "\" has no bias to take the difference; give the net's "
          "transform_param these means");
  return units;
}

// The border of an image, where the mean of one is not that of the other.
std::string border_note(const LayerParameter& layer, const InputUnits& units) {
  return units.shifted && pads(layer) ? "; at the border of an image, which is padded with the "
                                        "mean, results differ slightly"
                                      : "";
}

// The weight of a tap in PyTorch's order, and its position here, where channels are B, G, R.
template <typename Visit>
void for_taps(const Shape& shape, const Visit& visit) {
  const int64_t taps = shape.count(2);
  for (int64_t output = 0; output < shape[0]; ++output)
    for (int channel = 0; channel < kChannels; ++channel)
      for (int64_t tap = 0; tap < taps; ++tap)
        visit(output, channel, (output * kChannels + channel) * taps + tap,
              (output * kChannels + kChannels - 1 - channel) * taps + tap);
}

}  // namespace

std::set<int> layers_reading(const Net& net, const std::string& blob) {
  // Split layers are between a blob and its readers if there are several.
  std::set<std::string> blobs{blob};
  std::set<int> found;
  const Graph& graph = net.graph();
  for (int i = 0; i < graph.net.layer_size(); ++i) {
    const LayerParameter& layer = graph.net.layer(i);
    bool reads = false;
    for (const std::string& bottom : layer.bottom()) reads = reads || blobs.count(bottom) > 0;
    if (!reads) continue;
    if (layer.type() == "Split") blobs.insert(layer.top().begin(), layer.top().end());
    if (!graph.views[i].parameters.empty()) found.insert(i);
  }
  return found;
}

std::string fold_input(const LayerParameter& layer, const Shape& shape, const WeightNames& names,
                       const TorchInput& input, std::vector<float>* weight,
                       std::vector<float>* bias) {
  const InputUnits units = input_units(layer, shape, names, input, !bias->empty());
  const std::vector<float> from = *weight;
  std::vector<double> shift(shape[0], 0);
  for_taps(shape, [&](int64_t output, int channel, int64_t torchs, int64_t ours) {
    (*weight)[ours] = static_cast<float>(from[torchs] * units.factor[channel]);
    shift[output] += from[torchs] * units.offset[channel];
  });
  for (int64_t output = 0; units.shifted && output < shape[0]; ++output)
    (*bias)[output] = static_cast<float>((*bias)[output] + shift[output]);
  return cat("Layer \"", layer.name(), "\" takes the deviations ", names.std[0], ", ", names.std[1],
             ", ", names.std[2],
             " and reads B, G, R: images go in as the net's data layer prepares them",
             units.shifted ? ". The difference of the means is in its bias" : "",
             border_note(layer, units));
}

std::string unfold_input(const LayerParameter& layer, const Shape& shape, const WeightNames& names,
                         const TorchInput& input, std::vector<float>* weight,
                         std::vector<float>* bias) {
  const InputUnits units = input_units(layer, shape, names, input, !bias->empty());
  const std::vector<float> from = *weight;
  std::vector<double> shift(shape[0], 0);
  for_taps(shape, [&](int64_t output, int channel, int64_t torchs, int64_t ours) {
    const double value = from[ours] / units.factor[channel];
    (*weight)[torchs] = static_cast<float>(value);
    shift[output] += value * units.offset[channel];
  });
  for (int64_t output = 0; units.shifted && output < shape[0]; ++output)
    (*bias)[output] = static_cast<float>((*bias)[output] - shift[output]);
  return cat("\"", layer.name(), "\" reads R, G, B, as (x / 255 - mean) / std with mean ",
             names.mean[0], ", ", names.mean[1], ", ", names.mean[2], " and std ", names.std[0],
             ", ", names.std[1], ", ", names.std[2], border_note(layer, units));
}

}  // namespace crema
