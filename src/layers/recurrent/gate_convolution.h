// The convolutions of an LSTM's four gates, each with parameters of its own, computed as one: their
// weights are put side by side before a pass, and the gradient is taken apart after it.
#pragma once

#include <vector>

#include "kernels/conv/conv.h"
#include "layers/vision/spatial_params.h"

namespace crema {

class ConvolutionParameter;

struct GateConvolution {
  static constexpr int kGates = 4;

  GateConvolution() = default;
  // Reads what `p` says of images (channels, spatial...). Error unless the spatial extents stay.
  GateConvolution(const ConvolutionParameter& p, const Shape& image);

  Shape gate_weights() const;  // (outputs, channels / groups, kernel...)
  Shape weights() const;       // (4 outputs, channels, kernel...)
  // x: (count, channels, spatial...). Which calls will be made is the caller's.
  ConvCase conv_case(const Shape& x) const;

  SpatialParams spatial;
  int64_t channels = 0, outputs = 0, groups = 1;
};

// Where the gates' parameters of one kind are: at first, first + step, ...
struct GatePlaces {
  int first = -1, step = 1;
  bool there() const { return first >= 0; }
  int of(int gate) const { return first + gate * step; }
};

// all = [the gates' parameters], (4 outputs, ...). With groups a filter gets zeros for the channels
// of other groups.
void join_gates(Context& context, const std::vector<Tensor>& parameters, const GatePlaces& places,
                int64_t groups, const Tensor& all);
// The way back, to those diffs that are wanted.
void part_gates(Context& context, const Tensor& all, const GatePlaces& places, int64_t groups,
                const std::vector<Tensor>& diffs, const std::vector<char>& accumulate);

}  // namespace crema
