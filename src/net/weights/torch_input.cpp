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
  const bool fits = layer.type() == "Convolution" && shape.axes() == 4 && shape[1] == kChannels;
  require(fits, input.where, ": layer \"", visible(layer.name()), "\" of type ", layer.type(),
          " reads images; means and deviations of PyTorch go into a Convolution of three channels "
          "alone. A map without mean and std takes weights as they are");
  // Here: y = (x - input.mean) * scale. PyTorch: z = (x - 255 mean) / (255 std)
  //   = y / (255 std scale) + (input.mean - 255 mean) / (255 std).
  double factor[kChannels], offset[kChannels];  // of PyTorch's channels
  bool shifted = false;
  for (int channel = 0; channel < kChannels; ++channel) {
    const double deviation = 255.0 * names.std[channel];
    const double mean = input.mean[kChannels - 1 - channel];
    factor[channel] = 1 / (deviation * input.scale);
    offset[channel] = (mean - 255.0 * names.mean[channel]) / deviation;
    // A mean is written with six digits.
    if (std::abs(offset[channel]) * deviation < 1e-3) offset[channel] = 0;
    shifted = shifted || offset[channel] != 0;
  }
  require(!shifted || !bias->empty(), input.where, ": the net subtracts ", input.mean[0], ", ",
          input.mean[1], ", ", input.mean[2], ", PyTorch's ", 255 * names.mean[2], ", ",
          255 * names.mean[1], ", ", 255 * names.mean[0], " (B, G, R), and layer \"",
          visible(layer.name()),
          "\" has no bias to take the difference; give the net's "
          "transform_param these means");
  const int64_t taps = shape.count(2);
  const std::vector<float> from = *weight;
  for (int64_t output = 0; output < shape[0]; ++output) {
    double shift = 0;
    for (int channel = 0; channel < kChannels; ++channel) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        const float value = from[(output * kChannels + channel) * taps + tap];
        (*weight)[(output * kChannels + kChannels - 1 - channel) * taps + tap] =
            static_cast<float>(value * factor[channel]);
        shift += value * offset[channel];
      }
    }
    if (shifted) (*bias)[output] = static_cast<float>((*bias)[output] + shift);
  }
  std::string note = cat("Layer \"", layer.name(), "\" takes the deviations ", names.std[0], ", ",
                         names.std[1], ", ", names.std[2],
                         " and reads B, G, R: images go in as the net's data layer prepares them");
  if (shifted) {
    note += ". The difference of the means is in its bias";
    if (pads(layer))
      note += "; at the border of an image, which is padded with the mean, results differ slightly";
  }
  return note;
}

}  // namespace crema
