// What passes over sample data show of the layers that can compute with integers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "exchange/quantize/value_histogram.h"
#include "kernels/pointwise/quantize.h"
#include "net/net.h"

namespace crema {

// Names of the net's layers that read quantization_param and have weights of their own, in its order.
std::vector<std::string> quantizable_layers(const Net& net);

// Fills what no source fills, before each pass; none: sources fill all.
using BatchFeed = std::function<void(Net& net, int64_t batch)>;

struct LayerCalibration {
  std::string layer;
  ValueHistogram bottom;  // the values that it reads
  // Mean of the values of each channel or, without spatial axes, of each element.
  std::vector<double> means;
};

// Runs the net, planned with NetOptions::keep_blobs, for so many batches. Error for values that are not
// finite, with the layer.
std::vector<LayerCalibration> calibrate(Net& net, int64_t batches, const BatchFeed& feed);

// The same means of values rounded as `values` says for each layer, of the same batches.
std::vector<std::vector<double>> rounded_means(Net& net, int64_t batches, const BatchFeed& feed,
                                               const std::vector<QuantizedValues>& values);

// 10 * log10 of the ratio of y * y to (y - z) * (y - z), where y and z are the tops of each layer of
// quantizable_layers() in two nets with the same layers and data, both with NetOptions::keep_blobs. Infinite
// where they are equal.
std::vector<double> signal_to_noise(Net& exact, Net& rounded, int64_t batches,
                                    const BatchFeed& feed);

}  // namespace crema
