// Pooling: reduces each window of a channel to one value.
//   MAX         y = the maximum; of equal values the first from the upper left
//   AVE         y = sum of the window / its number of pixels, padding included
//   STOCHASTIC  in training a value sampled with probability x / sum(x), in testing
//               sum(x^2) / sum(x); no padding
// Shapes: x (N, C, H, W), or with one to six spatial axes (STOCHASTIC: to three); y (N, C, H', W')
//   with H' = ceil((H + 2 pad - kernel) / stride) + 1, floor instead of ceil with round_mode:
//   FLOOR; with a dilation of d the kernel spans d * (kernel - 1) + 1 values.
// With padding, a last window that would start in the far padding is dropped. A second top of MAX
// has each maximum's index in its channel, h * W + w; -1 if the window is empty (there y is
// -FLT_MAX). The planner fuses MAX and a following ReLU into "Pooling+ReLU".
// Parameters: none.
// Gradient: MAX and STOCHASTIC pass dy to the value that was kept, AVE an equal share to each
// pixel. Pooling3D, NdPooling and PoolingND are names of forks for video and volumes: kernel_depth,
// temporal_stride and temporal_pad apply to time, the first of three axes.
#include <algorithm>

#include "kernels/conv/conv.h"
#include "kernels/pointwise/batch_values.h"
#include "kernels/pool/pool.h"
#include "kernels/pool/pool_nd.h"
#include "layers/layer.h"
#include "layers/vision/pooling_window.h"
#include "proto/layer.pb.h"
#include "proto/params/activation.pb.h"
#include "proto/params/pooling.pb.h"

namespace crema {
namespace {

// A property of a window as the file gives it: one value for all axes, or some of height, width,
// depth, or a list.
struct WindowField {
  const char* name;
  bool has_one, has_height, has_width, has_depth;
  uint32_t one, height, width, depth;
  const BlobShape* list;

  std::vector<int64_t> read(int spatial) const {
    require(has_height == has_width, name, "_h and ", name, "_w must be given together");
    require(!has_one || !has_height || one == 0, "give ", name, " for all axes or ", name,
            "_h and ", name, "_w, not both");
    require(!has_height || spatial >= 2, name, "_h and ", name, "_w need two spatial axes");
    std::vector<int64_t> values(spatial, one);
    if (has_height) {
      values[spatial - 2] = height;
      values[spatial - 1] = width;
    }
    if (has_depth) values[0] = depth;
    if (list->dim_size() == 0) return values;
    require(list->dim_size() == 1 || list->dim_size() == spatial, name, "_shape has ",
            list->dim_size(), " numbers for ", spatial, " spatial axes");
    for (int axis = 0; axis < spatial; ++axis)
      values[axis] = list->dim(list->dim_size() == 1 ? 0 : axis);
    return values;
  }
};

class PoolingLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::pooling, .keeps_channels = true, .keeps_zero = true};

  std::optional<PoolWindow> chosen_window(const Shape& bottom) const {
    if (many_axes_) return std::nullopt;
    return window(bottom);
  }

  // See pooling_window.h.
  PoolNd axes(const Shape& bottom) const {
    PoolNd w = axes_;
    if (p().global_pooling())
      for (int axis = 2; axis < bottom.axes(); ++axis) w.kernel[axis - 2] = bottom[axis];
    return w;
  }
  std::string empty_windows(const Shape& x) const {
    const PoolNd w = axes(x);
    const Shape y = infer({x}).tops[0];
    for (size_t axis = 0; axis < w.kernel.size(); ++axis) {
      const int64_t extent = x[static_cast<int>(axis) + 2], count = y[static_cast<int>(axis) + 2];
      for (int64_t o = 0; o < count; ++o) {
        const int64_t first = o * w.stride[axis] - w.pad[axis];
        if (first >= 0 && first < extent) {  // as in all others that begin inside of the image
          o = (extent - 1 + w.pad[axis]) / w.stride[axis];
          continue;
        }
        bool empty = true;
        for (int64_t k = 0; k < w.kernel[axis] && empty; ++k) {
          const int64_t at = first + k * w.dilation[axis];
          empty = at < 0 || at >= extent;
        }
        if (!empty) continue;
        return cat("window ", o + 1, " of ", count, " along axis ", axis + 2, " of ", x.brief(),
                   " lies outside of the image (kernel ", w.kernel[axis], ", stride ",
                   w.stride[axis], ", pad ", w.pad[axis],
                   "): it has no values, so its output is always ",
                   method_ == PoolMethod::max ? "-3.4e38" : "0",
                   method_ == PoolMethod::max ? ", which no layer behind it can compute with" : "",
                   "; write round_mode: FLOOR, which leaves this window out, or a kernel_size of "
                   "at least the stride");
      }
    }
    return "";
  }

 private:
  const PoolingParameter& p() const { return params<PoolingParameter>(); }
  Arity tops() const override { return {1, p().pool() == PoolingParameter::MAX ? 2 : 1}; }
  LayerTraits traits() const override {
    return {.order_rule = OrderRule::any,
            .half_rule = half_rule(),
            .reads = {method_ == PoolMethod::stochastic_test, false}};
  }
  // 16 bits cannot hold the indices of a mask.
  HalfRule half_rule() const {
    return message().top_size() > 1 ? HalfRule::never : HalfRule::follows;
  }
  Edge bottom_edge(int) const override {
    return {.relu = method_ == PoolMethod::max && !many_axes_};
  }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    const int spatial = bottoms[0].axes() - 2;
    require(spatial >= 1 && spatial <= kMaxSpatialAxes,
            "Pooling takes (N, C) and one to six spatial axes, but the bottom is ",
            bottoms[0].brief());
    switch (p().pool()) {
      case PoolingParameter::MAX:
        method_ = PoolMethod::max;
        break;
      case PoolingParameter::AVE:
        method_ = PoolMethod::average;
        break;
      case PoolingParameter::STOCHASTIC:
        method_ = training() ? PoolMethod::stochastic : PoolMethod::stochastic_test;
        break;
    }
    read_window(spatial);
    read_dilation(spatial);
    relu_after_ = fuses("ReLU");
    many_axes_ = spatial > 3 || std::any_of(axes_.dilation.begin(), axes_.dilation.end(),
                                            [](int64_t distance) { return distance > 1; });
    require(
        !many_axes_ || p().pool() != PoolingParameter::STOCHASTIC,
        "STOCHASTIC pooling takes one to three spatial axes and no dilation, but the bottom is ",
        bottoms[0].brief());
  }

  bool is_profitable(const Context& context, const std::vector<Shape>&, Precision) const override {
    return context.device() == Device::gpu && can_end_in_relu();
  }
  bool can_end_in_relu() const {
    return method_ == PoolMethod::max && !many_axes_ && message().top_size() <= 1 &&
           params<ReLUParameter>().negative_slope() == 0;
  }

  void read_dilation(int spatial) {
    const int given = p().dilation_size();
    require(given <= 1 || given == spatial, "dilation is given ", given, " times for ", spatial,
            " spatial axes: give it once for all, or once for each");
    axes_.dilation.assign(spatial, given > 0 ? p().dilation(0) : 1);
    for (int axis = 1; axis < given; ++axis) axes_.dilation[axis] = p().dilation(axis);
    for (int64_t distance : axes_.dilation)
      require(distance > 0, "the dilation must be at least 1");
  }

  void read_window(int spatial) {
    // A file that gives the extent along time gives stride and padding along time too; they default
    // to 1 and 0.
    const bool time = p().has_kernel_depth();
    require((!time && !p().has_temporal_stride() && !p().has_temporal_pad()) || spatial == 3,
            "kernel_depth, temporal_stride and temporal_pad are for three spatial axes (time, "
            "height, width), but there are ",
            spatial);
    axes_.count_padding = p().avg_include_pad();
    axes_.kernel = WindowField{"kernel",
                               p().has_kernel_size(),
                               p().has_kernel_h(),
                               p().has_kernel_w(),
                               time,
                               p().kernel_size(),
                               p().kernel_h(),
                               p().kernel_w(),
                               p().kernel_depth(),
                               &p().kernel_shape()}
                       .read(spatial);
    axes_.stride = WindowField{"stride",
                               p().has_stride(),
                               p().has_stride_h(),
                               p().has_stride_w(),
                               time || p().has_temporal_stride(),
                               p().stride(),
                               p().stride_h(),
                               p().stride_w(),
                               p().temporal_stride(),
                               &p().stride_shape()}
                       .read(spatial);
    axes_.pad = WindowField{"pad",
                            p().has_pad(),
                            p().has_pad_h(),
                            p().has_pad_w(),
                            time || p().has_temporal_pad(),
                            p().pad(),
                            p().pad_h(),
                            p().pad_w(),
                            p().temporal_pad(),
                            &p().pad_shape()}
                    .read(spatial);

    const bool kernel_given =
        p().has_kernel_size() || p().has_kernel_h() || time || p().kernel_shape().dim_size() > 0;
    if (p().global_pooling())
      require(!kernel_given, "global_pooling takes the whole image: leave out the kernel's size");
    for (int axis = 0; axis < spatial; ++axis) {
      const int64_t kernel = axes_.kernel[axis], pad = axes_.pad[axis];
      require(axes_.stride[axis] > 0, "the stride must be at least 1");
      if (p().global_pooling()) {
        require(pad == 0 && axes_.stride[axis] == 1,
                "global_pooling goes with pad: 0 and stride: 1 only");
        continue;
      }
      require(kernel_given,
              "Pooling needs kernel_size, or kernel_h and kernel_w, or global_pooling: true");
      require(kernel > 0, "the kernel must be at least 1 in each direction");
      require(pad == 0 || p().pool() != PoolingParameter::STOCHASTIC,
              "STOCHASTIC pooling takes no padding");
      require(pad < kernel, "the padding must be smaller than the kernel, but pad is ", pad,
              " and the kernel ", kernel);
    }
  }

  PoolWindow window(const Shape& bottom) const {
    const PoolNd all = axes(bottom);
    PoolWindow w;
    w.method = method_;
    w.count_padding = all.count_padding;
    w.relu_after = relu_after_;
    const size_t lacking = 3 - all.kernel.size();
    for (size_t axis = 0; axis < all.kernel.size(); ++axis) {
      w.kernel[lacking + axis] = all.kernel[axis];
      w.stride[lacking + axis] = all.stride[axis];
      w.pad[lacking + axis] = all.pad[axis];
    }
    return w;
  }

  static int64_t outputs(int64_t extent, int64_t kernel, int64_t stride, bool round_down) {
    if (extent >= kernel) return (extent - kernel + (round_down ? 0 : stride - 1)) / stride + 1;
    // A kernel that exceeds the input by less than a stride still has one window.
    return round_down ? 0 : 1 - (kernel - extent) / stride;
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    const PoolNd w = axes(x);
    const bool round_down =
        p().round_mode() == PoolingParameter::FLOOR || !p().ceil_mode() || p().torch_pooling();
    const bool padded =
        std::any_of(w.pad.begin(), w.pad.end(), [](int64_t pad) { return pad > 0; });
    Shape y{x[0], x[1]};
    for (int i = 2; i < x.axes(); ++i) {
      const int axis = i - 2;
      const int64_t kernel = (w.kernel[axis] - 1) * w.dilation[axis] + 1, pad = w.pad[axis];
      int64_t count = outputs(x[i] + 2 * pad, kernel, w.stride[axis], round_down);
      if (padded && (count - 1) * w.stride[axis] >= x[i] + pad) --count;
      require(count > 0, "a kernel of ", kernel, " does not fit into ", x[i],
              " values with padding ", pad, ": the bottom is ", x.brief());
      y.push_back(count);
    }
    std::vector<Shape> tops(std::max(message().top_size(), 1), y);
    if (many_axes_ && method_ == PoolMethod::max) return {tops, {{y, DType::i32}}};
    if (many_axes_ || !window(x).has_index()) return {tops, {}};
    return {tops, {{y, window(x).index_dtype()}}};
  }

  struct State : LayerState {
    bool relu_before = false;  // see Edge
  };

  Prepared prepare(Context&, const Preparation& preparation) const override {
    require(!relu_after_ || can_end_in_relu(),
            "only a MAX pooling of one to three spatial axes can end in a ReLU, of slope 0");
    Prepared prepared;
    prepared.make_state<State>().relu_before = preparation.bottom_edge.relu;
    return prepared;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor mask = pass.top.size() > 1 ? pass.top[1] : Tensor();
    const Tensor index = pass.saved.empty() ? Tensor() : in_order_of(pass.saved[0], pass.top[0]);
    const Shape& x = pass.bottom[0].shape();
    if (many_axes_) {
      pool_nd_forward(context, axes(x), method_ == PoolMethod::average, pass.bottom[0], pass.top[0],
                      index, mask);
    } else {
      PoolWindow w = window(x);
      w.relu_before = state_of<State>(pass).relu_before;
      w.first_image = values_before(pass.share, x[0]);
      pool_forward(context, w, context.random(id(), pass.pass, pass.live_pass), pass.bottom[0],
                   pass.top[0], index, mask);
    }
  }

  void backward(Context& context, const Backward& pass) const override {
    if (!pass.bottom_diff[0]) return;
    const Tensor index =
        pass.saved.empty() ? Tensor() : in_order_of(pass.saved[0], pass.top_diff[0]);
    const Shape& x = pass.bottom_diff[0].shape();
    if (many_axes_) {
      pool_nd_backward(context, axes(x), method_ == PoolMethod::average, index, pass.top_diff[0],
                       pass.bottom_diff[0]);
    } else {
      PoolWindow w = window(x);
      w.relu_before = state_of<State>(pass).relu_before;
      pool_backward(context, w, pass.bottom[0], index, pass.top_diff[0], pass.bottom_diff[0]);
    }
  }

  // The index is stored in the memory order of the tops.
  static Tensor in_order_of(const Tensor& saved, const Tensor& top) {
    return saved.reshaped(top.shape(), top.format());
  }

  PoolMethod method_ = PoolMethod::max;
  PoolNd axes_;             // of a global pooling, without the kernel
  bool many_axes_ = false;  // more than three, or with dilation: kernels/pool/pool_nd.h
  bool relu_after_ = false;
};

REGISTER_FUSED(PoolingLayer, "Pooling+ReLU");

}  // namespace

std::optional<PoolWindow> pool_window(const Layer& pooling, const Shape& bottom) {
  return static_cast<const PoolingLayer&>(pooling).chosen_window(bottom);
}

PoolNd pool_axes(const Layer& pooling, const Shape& bottom) {
  return static_cast<const PoolingLayer&>(pooling).axes(bottom);
}

std::string empty_windows(const Layer& layer, const std::vector<Shape>& bottoms) {
  const auto* const pooling = dynamic_cast<const PoolingLayer*>(&layer);
  return pooling ? pooling->empty_windows(bottoms[0]) : "";
}

REGISTER_LAYER(Pooling, PoolingLayer);
REGISTER_LAYER(Pooling3D, PoolingLayer);
REGISTER_LAYER(NdPooling, PoolingLayer);
REGISTER_LAYER(PoolingND, PoolingLayer);
}  // namespace crema
