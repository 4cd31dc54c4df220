// The convolutions of an LSTM's four gates, each with its own parameters, computed as one: their
// weights are concatenated before a pass, and the gradient is split after it.
#pragma once

#include <vector>

#include "kernels/conv/conv.h"
#include "layers/vision/spatial_params.h"

namespace crema {

class ConvolutionParameter;
class LayerParameter;

struct GateConvolution {
  static constexpr int kGates = 4;

  GateConvolution() = default;
  // Reads from `p` what concerns images (channels, spatial...). Error unless the spatial extents
  // are preserved.
  GateConvolution(const ConvolutionParameter& p, const Shape& image);

  Shape gate_weights() const;  // (outputs, channels / groups, kernel...)
  Shape weights() const;       // (4 outputs, channels, kernel...)
  // x: (count, channels, spatial...). The caller sets which calls will be made.
  ConvCase conv_case(const Shape& x) const;

  SpatialParams spatial;
  int64_t channels = 0, outputs = 0, groups = 1;
};

// Error unless the layer's lstm_conv_param describe the convolutions of x and of h, together or apart.
void check_gate_convolutions(const LayerParameter& message);

// Indices of the gates' parameters of one kind: first, first + step, ...
struct GateIndices {
  int first = -1, step = 1;
  bool there() const { return first >= 0; }
  int of(int gate) const { return first + gate * step; }
};

// all = concatenation of the gates' parameters, (4 outputs, ...). With groups, a filter is zero for
// the channels of other groups.
void concat_gates(Context& context, const std::vector<Tensor>& parameters,
                  const GateIndices& positions, int64_t groups, const Tensor& all);
// The inverse, into those diffs that are needed.
void split_gates(Context& context, const Tensor& all, const GateIndices& positions, int64_t groups,
                 const std::vector<Tensor>& diffs, const std::vector<char>& accumulate);

}  // namespace crema
