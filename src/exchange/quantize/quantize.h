// Post-training quantization: chooses steps from sample data and writes them as quantization_param.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "exchange/quantize/calibration.h"
#include "net/weights/net_weights.h"

namespace crema {

// How a layer computes with 8-bit integers. A scale is 1 divided by a step, as in the text.
struct LayerSteps {
  std::string layer;
  bool has_sign = false;  // the bottom's integers have one
  float scale = 1;        // the bottom's
  int weight_bits = 8;
  std::vector<float> weight_scales;  // one for each row
  std::vector<float> bias;           // corrected; empty: the layer has none
  float largest = 0;                 // magnitude of the values that it read
  float range = 0;                   // the largest one that is not clipped
  double clipped = 0;                // share of the values above it

  QuantizedValues bottom() const {
    return {1 / scale, has_sign ? -128.f : 0.f, has_sign ? 127.f : 255.f};
  }
};

// What a layer reads, as training with `quantize` in the solver has found it.
struct TrainedRange {
  bool has_sign = false;
  float range = 0;
};

// Chooses the steps. `net` has the layers and is planned with NetOptions::keep_blobs; it runs the batches
// that it was calibrated with once more. The bottom's integers have a sign if it had negative values; a row of
// weights has a step so that its largest one is the largest integer. Rounding shifts the mean of a layer's results:
// that is subtracted from its bias, which becomes a multiple of the product of both steps, an integer of
// 32 bits. Layers whose values, or weights, are all 0 are left out. A layer in `trained` has that range, and its mean
// is not shifted: it has learned with the rounding.
// weight_bits: 2 to 8.
std::vector<LayerSteps> choose_steps(Net& net, const std::vector<LayerCalibration>& layers,
                                     RangeRule rule,
                                     const std::map<std::string, TrainedRange>& trained,
                                     int weight_bits, int64_t batches, const BatchFeed& feed);

// Writes them into the net's layers of these names, and the biases into the weights.
void apply_steps(const std::vector<LayerSteps>& steps, NetParameter* net, NetWeights* weights);

}  // namespace crema
