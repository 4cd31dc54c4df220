#include "layers/recurrent/gate_convolution.h"

#include "base/error.h"
#include "kernels/pointwise/pointwise.h"
#include "proto/layer.pb.h"
#include "proto/params/convolution.pb.h"

namespace crema {
namespace {

// Copies one gate's filters into those of all gates. each: weights per filter.
template <typename T>
struct ConcatGate {
  const T* w;
  T* all;
  int64_t each, rows_of_group, columns;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t i = column - row / rows_of_group * each;
    all[row * columns + column] = i >= 0 && i < each ? w[row * each + i] : T(0);
  }
};

template <typename T>
struct SplitGate {
  const T* all;
  T* dw;
  int64_t each, rows_of_group, columns;
  bool accumulate;
  CREMA_HD void operator()(int64_t row, int64_t i) const {
    const T value = all[row * columns + row / rows_of_group * each + i];
    T& goal = dw[row * each + i];
    goal = accumulate ? goal + value : value;
  }
};

}  // namespace

GateConvolution::GateConvolution(const ConvolutionParameter& p, const Shape& image)
    : channels(image[0]), outputs(p.num_output()), groups(p.group()) {
  ConvolutionParameter of_image = p;
  of_image.set_axis(0);
  spatial = spatial_params(of_image, image);
  for (size_t axis = 0; axis < spatial.kernel.size(); ++axis) {
    const int64_t reach = spatial.dilation[axis] * (spatial.kernel[axis] - 1);
    require(
        spatial.stride[axis] == 1 && 2 * spatial.pad[axis] == reach,
        "the states have the bottom's extents, so convolutions must keep them: an odd "
        "kernel_size, stride 1 and as pad half of what the kernel reaches, but on spatial axis ",
        axis, " kernel_size is ", spatial.kernel[axis], ", stride ", spatial.stride[axis],
        " and pad ", spatial.pad[axis]);
  }
  require(groups > 0 && channels % groups == 0 && outputs % groups == 0, "group ", groups,
          " does not divide ", channels, " channels and num_output ", outputs);
}

void check_gate_convolutions(const LayerParameter& message) {
  const auto& all = message.lstm_conv_param();
  require(all.size() == 1 || all.size() == 2, "lstm_conv_param is given ", all.size(),
          " times, but is needed once, or twice: type \"input\" and type \"hidden\"");
  for (const ConvolutionParameter& c : all) {
    const bool fits =
        c.type() == "all" ? all.size() == 1 : &c == &all[0] || c.type() != all[0].type();
    require(fits && (c.type() == "all" || c.type() == "input" || c.type() == "hidden"),
            "type is \"", c.type(),
            "\", but must be \"all\" in one lstm_conv_param, \"input\" and \"hidden\" in two");
    require(c.num_output() > 0 && c.num_output() == all[0].num_output(), "num_output is ",
            c.num_output(),
            ", but must be the number of channels of the state, at least 1 and "
            "the same in each lstm_conv_param");
  }
}

Shape GateConvolution::gate_weights() const {
  Shape w = {outputs, channels / groups};
  for (int64_t extent : spatial.kernel) w.push_back(extent);
  return w;
}

Shape GateConvolution::weights() const {
  Shape w = gate_weights();
  w[0] = kGates * outputs;
  w[1] = channels;
  return w;
}

ConvCase GateConvolution::conv_case(const Shape& x) const {
  ConvCase c;
  c.x = c.y = x;
  c.y[1] = kGates * outputs;
  c.w = weights();
  c.stride = spatial.stride;
  c.pad = spatial.pad;
  c.dilation = spatial.dilation;
  c.weights_format = Format::row_major();
  return c;
}

void concat_gates(Context& context, const std::vector<Tensor>& parameters,
                  const GateIndices& positions, int64_t groups, const Tensor& all) {
  const int64_t rows = all.shape()[0] / GateConvolution::kGates, columns = all.shape().count(1);
  on(all, [&]<typename T>() {
    for (int gate = 0; gate < GateConvolution::kGates; ++gate) {
      parallel_rows(context, rows, columns,
                    ConcatGate<T>{parameters[positions.of(gate)].template data<T>(),
                                  all.data<T>() + gate * rows * columns, columns / groups,
                                  rows / groups, columns});
    }
  });
}

void split_gates(Context& context, const Tensor& all, const GateIndices& positions, int64_t groups,
                 const std::vector<Tensor>& diffs, const std::vector<char>& accumulate) {
  const int64_t rows = all.shape()[0] / GateConvolution::kGates, columns = all.shape().count(1);
  on(all, [&]<typename T>() {
    for (int gate = 0; gate < GateConvolution::kGates; ++gate) {
      const int position = positions.of(gate);
      if (!diffs[position]) continue;
      parallel_rows(
          context, rows, columns / groups,
          SplitGate<T>{all.data<T>() + gate * rows * columns, diffs[position].template data<T>(),
                       columns / groups, rows / groups, columns, accumulate[position] != 0});
    }
  });
}

}  // namespace crema
