// The kernels of depthwise.cuh as a convolution: 3x3 and 5x5 with stride 1 (any dilation) and
// 2, any pad.
#include <algorithm>

#include "base/ceil_div.h"
#include "device/multiprocessors.h"
#include "kernels/conv/depthwise/depthwise.cuh"
#include "kernels/conv/depthwise/depthwise.h"
#include "kernels/conv/depthwise/depthwise_tensor.cuh"
#include "kernels/conv/implicit_gemm/implicit_gemm.h"

namespace crema {
namespace {

int to_int(int64_t value) { return static_cast<int>(value); }

DepthwiseImage image_of(const Shape& shape) { return {to_int(shape[2]), to_int(shape[3])}; }

// Tiling: DepthwiseTiling or DepthwiseTensorTiling.
template <typename Tiling>
class DepthwiseGpu final : public LinearKernel {
 public:
  DepthwiseGpu(const Context& context, const ConvCase& c, const Tiling& forward, const Tiling& data,
               const Tiling& gradients, bool fuses)
      : c_(c),
        kind_{c.dtype, to_int(c.w[2]), to_int(c.stride[0])},
        fprop_(forward),
        dgrad_(data),
        gradients_(gradients),
        fuses_(fuses),
        adds_(c.backward_weights && !context.repeatable) {}

  Format weights_format() const override { return Format::channels_last(); }
  size_t workspace() const override {
    if (!c_.backward_weights || adds_) return 0;
    return static_cast<size_t>(depthwise_parts(gradients_, to_int(c_.w.count(2)))) * sizeof(float);
  }
  LinearKernelFeatures features() const override {
    // With a ReLU, the caller's pass that applies its gradient computes db along the way.
    return {.bias_gradient = !c_.relu.on, .atomic_wgrad = adds_, .fused_gradients = fuses_};
  }

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor&) override {
    start_depthwise_sums(context.gpu(), fprop_, kind_,
                         {x.raw(),
                          w.raw(),
                          b ? b.raw() : nullptr,
                          image_of(c_.x),
                          image_of(c_.y),
                          to_int(c_.pad[0]),
                          to_int(c_.pad[1]),
                          {c_.relu.on, c_.relu.slope},
                          false,
                          y.raw()});
  }

  void backward_data(Context& context, const OutputGradient& g, const Tensor& w, const Tensor& dx,
                     const Tensor&) override {
    if (kind_.stride > 1) {
      DepthwiseGradients gradients = gradients_of(g.dy);
      gradients.w = w.raw(), gradients.dx = dx.raw();
      return start_depthwise_gradients(context.gpu(), gradients_, kind_, gradients);
    }
    const int reach = to_int(c_.dilation[0]) * (kind_.kernel - 1);
    start_depthwise_sums(context.gpu(), dgrad_, kind_,
                         {g.dy.raw(),
                          w.raw(),
                          nullptr,
                          image_of(c_.y),
                          image_of(c_.x),
                          reach - to_int(c_.pad[0]),
                          reach - to_int(c_.pad[1]),
                          {},
                          true,
                          dx.raw()});
  }

  void backward_weights(Context& context, const Tensor& x, const OutputGradient& g,
                        const Tensor& dw, const Tensor& db, bool accumulate_w, bool accumulate_b,
                        const Tensor& workspace) override {
    start(context, x, g, Tensor(), Tensor(), dw, db, accumulate_w, accumulate_b, workspace);
  }

  void backward_both(Context& context, const Tensor& x, const OutputGradient& g, const Tensor& w,
                     const Tensor& dx, const Tensor& dw, const Tensor& db, bool accumulate_w,
                     bool accumulate_b, const Tensor& workspace) override {
    if (fuses_) return start(context, x, g, w, dx, dw, db, accumulate_w, accumulate_b, workspace);
    LinearKernel::backward_both(context, x, g, w, dx, dw, db, accumulate_w, accumulate_b,
                                workspace);
  }

 private:
  DepthwiseGradients gradients_of(const Tensor& dy) const {
    DepthwiseGradients gradients{};
    gradients.dy = dy.raw();
    gradients.in = image_of(c_.x), gradients.out = image_of(c_.y);
    gradients.top = to_int(c_.pad[0]), gradients.left = to_int(c_.pad[1]);
    return gradients;
  }

  void start(Context& context, const Tensor& x, const OutputGradient& g, const Tensor& w,
             const Tensor& dx, const Tensor& dw, const Tensor& db, bool accumulate_w,
             bool accumulate_b, const Tensor& workspace) const {
    DepthwiseGradients gradients = gradients_of(g.dy);
    gradients.x = x.raw();
    if (dx) gradients.w = w.raw(), gradients.dx = dx.raw();
    gradients.dw = dw.data<float>(), gradients.accumulate_w = accumulate_w;
    if (db) gradients.db = db.data<float>(), gradients.accumulate_b = accumulate_b;
    if (adds_) {
      gradients.adds = true;
      if (!accumulate_w) zero(context, dw);
      if (db && !accumulate_b) zero(context, db);
    } else {
      gradients.parts = workspace.data<float>();
    }
    start_depthwise_gradients(context.gpu(), gradients_, kind_, gradients);
  }

  ConvCase c_;
  DepthwiseKind kind_;
  Tiling fprop_, dgrad_, gradients_;
  bool fuses_, adds_;
};

bool supports(Context& context, const ConvCase& c, std::string& reason) {
  if (c.w[2] != c.w[3] || (c.w[2] != 3 && c.w[2] != 5)) {
    reason = "for kernels of 3x3 and 5x5 only";
  } else if (c.stride[0] != c.stride[1] || c.dilation[0] != c.dilation[1]) {
    reason = "for the same stride and dilation along both axes only";
  } else if (c.stride[0] > 2 || (c.stride[0] == 2 && c.dilation[0] > 1)) {
    reason = "for stride 1, and stride 2 without dilation, only";
  } else if (std::max(c.x.count(), c.y.count()) >= int64_t{1} << 31) {
    reason = "too many elements";
  } else {
    return has_async_mma(context, reason);
  }
  return false;
}

bool is_full(const dim3& blocks, int resident) {
  return 5 * to_int(blocks.x * blocks.y) >= 4 * resident * kTypicalMultiprocessors;
}

}  // namespace

DepthwiseTiling::DepthwiseTiling(int images, int channels, int dilation, DepthwiseRange down,
                                 DepthwiseRange across, int width, int before, int resident,
                                 bool once)
    : channels(channels), dilation(dilation), down(down), across(across) {
  // Divided evenly, in multiples of memory sectors if that leaves no lane idle.
  const int pairs = channels / 2, minimum = ceil_div(pairs, kDepthwiseLanes);
  lanes = std::min(ceil_div(ceil_div(pairs, minimum), 4) * 4, kDepthwiseLanes);
  strips_per_block = kDepthwiseThreads / lanes;
  const int cuts = ceil_div(pairs, lanes), height = down.end - down.first;
  const int tiles = ceil_div(across.end - across.first, width),
            sheets = images * dilation * dilation;
  // The number of pieces with the lowest estimated time: rounds of blocks, times steps with some
  // for a strip's start, times concurrent blocks per multiprocessor; one alone waits half of its
  // time.
  int best = 0, pieces = 1;
  for (int count = 1; count <= ceil_div(height, 4); ++count) {
    const int all_blocks = cuts * ceil_div(sheets * tiles * count, strips_per_block);
    const int rounds = ceil_div(all_blocks, resident * kTypicalMultiprocessors);
    const int at_once = std::min(ceil_div(all_blocks, kTypicalMultiprocessors), resident);
    const int time = rounds * (ceil_div(height, count) + before + 1) * (at_once + 1);
    if (count == 1 || time < best) best = time, pieces = count;
  }
  rows = ceil_div(height, pieces);
  pieces = ceil_div(height, rows);
  strip_count = sheets * pieces * tiles;
  const int maximum = ceil_div(strip_count, strips_per_block);
  const int at_once = std::max(1, resident * kTypicalMultiprocessors / cuts);
  blocks = dim3(static_cast<unsigned>(cuts),
                static_cast<unsigned>(once ? maximum : std::min(maximum, at_once)));
  full = is_full(blocks, resident);
  by_lanes = Divisor(lanes), by_tiles = Divisor(tiles), by_pieces = Divisor(pieces);
  by_phases = Divisor(dilation * dilation), by_dilation = Divisor(dilation);
}

DepthwiseTensorTiling::DepthwiseTensorTiling(int images, int channels, int dilation,
                                             DepthwiseRange down, DepthwiseRange across,
                                             const DepthwiseBudget& budget)
    : channels(channels), dilation(dilation), down(down), across(across) {
  // The number of octets that leaves the fewest idle; no odd number above one, which would split
  // memory sectors.
  const int all = channels / 8;
  octets = std::min(all, budget.warps);
  const auto idle = [&](int count) { return ceil_div(all, count) * count - all; };
  for (int count = octets - 1; count >= budget.warps / 2 && all > budget.warps; --count) {
    if (count % 2 == 0 && idle(count) < idle(octets)) octets = count;
  }
  strips_per_block = budget.warps / octets;
  const int cuts = ceil_div(all, octets),
            width = ceil_div(across.end - across.first, 8);  // in eights
  sheets = images * dilation * dilation;
  images_per_strip = dilation == 1 && width <= budget.column_groups / 2
                         ? std::min(budget.column_groups / width, images)
                         : 1;
  column_groups = images_per_strip > 1 ? width : budget.column_groups;
  const int height = down.end - down.first, tiles = ceil_div(width, column_groups);
  const int image_sets = ceil_div(sheets, images_per_strip),
            maximum = std::max(1, budget.resident * kTypicalMultiprocessors / cuts);
  // Strips so short that concurrent blocks are adjacent in memory: otherwise reading and writing
  // take a fifth longer. Of these the one with the lowest estimated time: rounds, times steps with
  // those before the first result, times concurrent blocks per multiprocessor; one alone waits half
  // of its time.
  int best = 0, pieces = 1;
  for (int count = ceil_div(height, 8 * budget.before); count <= ceil_div(height, 4); ++count) {
    const int strip_sets = ceil_div(image_sets * tiles * count, strips_per_block),
              rounds = ceil_div(strip_sets, maximum);
    const int at_once =
        std::min(ceil_div(cuts * strip_sets, kTypicalMultiprocessors), budget.resident);
    const int time = rounds * (ceil_div(height, count) + budget.before + 1) * (at_once + 1);
    if (best == 0 || time < best) best = time, pieces = count;
  }
  rows = ceil_div(height, pieces), pieces = ceil_div(height, rows);
  strip_count = image_sets * tiles * pieces;
  blocks = dim3(static_cast<unsigned>(cuts),
                static_cast<unsigned>(std::min(maximum, ceil_div(strip_count, strips_per_block))));
  full = is_full(blocks, budget.resident);
  by_tiles = Divisor(tiles), by_pieces = Divisor(pieces);
  by_warps = Divisor(octets * strips_per_block), by_octets = Divisor(octets);
  by_phases = Divisor(dilation * dilation), by_dilation = Divisor(dilation);
}

namespace {

std::unique_ptr<LinearKernel> make_depthwise_gpu(Context& context, const ConvCase& c,
                                                 std::string& reason) {
  if (!is_depthwise(c, reason) || !supports(context, c, reason)) return nullptr;
  if (c.dtype == DType::f64 || c.x[1] % 2 != 0) {
    reason = "float64, or an odd number of channels";
    return nullptr;
  }
  return std::make_unique<DepthwiseGpu<DepthwiseTiling>>(
      context, c, depthwise_sums_tiling(c, false), depthwise_sums_tiling(c, true),
      depthwise_gradients_tiling(c),
      fuses_depthwise_gradients(to_int(c.w[2]), to_int(c.stride[0])));
}

std::unique_ptr<LinearKernel> make_depthwise_tensor_gpu(Context& context, const ConvCase& c,
                                                        std::string& reason) {
  if (!is_depthwise(c, reason) || !supports(context, c, reason)) return nullptr;
  if (!is_half(c.dtype) || c.x[1] % 8 != 0) {
    reason = "for 16 bits and channels in eights only";
    return nullptr;
  }
  return std::make_unique<DepthwiseGpu<DepthwiseTensorTiling>>(
      context, c, depthwise_sums_tensor_tiling(c, false), depthwise_sums_tensor_tiling(c, true),
      depthwise_gradients_tensor_tiling(c), true);
}

REGISTER_KERNEL(conv_kernels, "depthwise", RunsOn::gpu, 40, make_depthwise_gpu);
REGISTER_KERNEL(conv_kernels, "depthwise_tensor", RunsOn::gpu, 60, make_depthwise_tensor_gpu);

}  // namespace
}  // namespace crema
