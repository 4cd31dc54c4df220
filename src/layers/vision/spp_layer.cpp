// SPP: spatial pyramid pooling: images of any size give the same number of values.
//   y = [level 0, level 1, ...]
//   level i is Pooling into 2^i by 2^i cells, row-major in each channel
// A cell of level i has ceil(H / 2^i) by ceil(W / 2^i) pixels; the excess over the image is padding
// on both sides. pool is MAX, AVE or STOCHASTIC as of Pooling.
// Shapes: x (N, C, H, W), y (N, C * (4^pyramid_height - 1) / 3), or (N, C, 1, 1) for
// pyramid_height 1.
// Parameters: none.
// Gradient: that of each Pooling, summed.
#include "device/aligned.h"
#include "kernels/move/strided_copy.h"
#include "kernels/pointwise/add.h"
#include "kernels/pointwise/batch_values.h"
#include "kernels/pool/pool.h"
#include "layers/layer.h"
#include "proto/params/pooling.pb.h"
#include "tensor/part.h"

namespace crema {
namespace {

class SPPLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::pooling};

 private:
  const SPPParameter& p() const { return params<SPPParameter>(); }
  int levels() const { return static_cast<int>(p().pyramid_height()); }
  // The levels are pooled in the order of x; y has one row per image.
  LayerTraits traits() const override {
    return {.order_rule = OrderRule::any,
            .half_rule = HalfRule::follows,
            .reads = {method() == PoolMethod::stochastic_test, false}};
  }

  void setup(Context&, const std::vector<Shape>&) override {
    require(levels() >= 1 && levels() <= 16, "pyramid_height is ", levels(),
            ", but a number of grids from 1 to 16 is needed");
  }

  PoolMethod method() const {
    switch (p().pool()) {
      case SPPParameter::MAX:
        return PoolMethod::max;
      case SPPParameter::AVE:
        return PoolMethod::average;
      case SPPParameter::STOCHASTIC:
        break;
    }
    return training() ? PoolMethod::stochastic : PoolMethod::stochastic_test;
  }

  PoolWindow window(const Shape& x, int level) const {
    const int64_t cells = int64_t{1} << level;
    PoolWindow window;
    window.method = method();
    for (int axis = 1; axis < 3; ++axis) {
      const int64_t extent = x[1 + axis], kernel = (extent + cells - 1) / cells;
      window.kernel[axis] = window.stride[axis] = kernel;
      window.pad[axis] = (kernel * cells - extent + 1) / 2;
      require(window.pad[axis] < kernel, "pyramid_height ", levels(), " needs ", cells, " by ",
              cells, " cells, which the bottom, ", x.brief(),
              ", is too small for: use a smaller pyramid_height");
      require(window.pad[axis] == 0 || p().pool() != SPPParameter::STOCHASTIC,
              "STOCHASTIC pooling takes no padding, but ", extent, " pixels are not a multiple of ",
              cells, " cells");
    }
    return window;
  }

  static Shape pooled(const Shape& x, int level) {
    return {x[0], x[1], int64_t{1} << level, int64_t{1} << level};
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    require(x.axes() == 4, "SPP takes images (N, C, H, W), but the bottom is ", x.brief());
    Inference inference;
    Shape y{x[0], 0};
    for (int level = 0; level < levels(); ++level) {
      const PoolWindow window = this->window(x, level);
      const Shape top = pooled(x, level);
      y[1] += top.count(1);
      if (window.has_index()) inference.saved.push_back({top, window.index_dtype()});
    }
    inference.tops.push_back(levels() == 1 ? pooled(x, 0) : y);
    return inference;
  }

  // The levels' tops, followed by one blob like the bottom.
  Prepared prepare(Context&, const Preparation& preparation) const override {
    const Shape& x = preparation.bottoms[0];
    size_t bytes = 0;
    for (int level = 0; level < levels(); ++level)
      bytes += level_bytes(x, level, preparation.storage);
    if (preparation.backward) bytes += x.count() * size_of(preparation.storage);
    Prepared prepared;
    prepared.workspace = bytes;
    return prepared;
  }
  static size_t level_bytes(const Shape& x, int level, DType dtype) {
    return aligned(pooled(x, level).count() * size_of(dtype));
  }

  // The levels' tensors in the workspace, followed by one like x.
  struct Scratch {
    std::vector<Tensor> levels;
    Tensor like_x;
  };
  Scratch scratch(const Tensor& workspace, const Tensor& x, bool backward) const {
    Scratch s;
    size_t at = 0;
    for (int level = 0; level < levels(); ++level) {
      const Shape top = pooled(x.shape(), level);
      s.levels.push_back(part_of(workspace, at, top, x.dtype(), x.format()));
      at += level_bytes(x.shape(), level, x.dtype());
    }
    if (backward) s.like_x = part_of(workspace, at, x.shape(), x.dtype(), x.format());
    return s;
  }
  // The copy of a level's values into y.
  static StridedCopy moves(const Tensor& level, const Tensor& y) {
    const Shape& shape = level.shape();
    const std::vector<int64_t> from = steps_of(level);
    const int64_t cells = shape.count(2);
    StridedCopy moves;
    moves.to_start = (cells - 1) / 3 * shape[1];  // 1 + 4 + 16 + ... cells in the levels before
    moves.axes = {{shape[0], y.shape().count(1), from[0]},
                  {shape[1], cells, from[1]},
                  {shape[2], shape[3], from[2]},
                  {shape[3], 1, from[3]}};
    return moves;
  }
  static Tensor index(const std::vector<Tensor>& saved, int level) {
    return saved.empty() ? Tensor() : saved[level];
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &x = pass.bottom[0], &y = pass.top[0];
    const Scratch s = scratch(pass.workspace, x, false);
    for (int level = 0; level < levels(); ++level) {
      PoolWindow w = window(x.shape(), level);
      w.first_image = values_before(pass.share, x.shape()[0]);
      pool_forward(context, w, context.random(mix(id(), level), pass.pass, pass.live_pass), x,
                   s.levels[level], index(pass.saved, level), Tensor());
      strided_copy(context, moves(s.levels[level], y), s.levels[level], y);
    }
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor &dx = pass.bottom_diff[0], &dy = pass.top_diff[0];
    const Scratch s = scratch(pass.workspace, dx, true);
    for (int level = 0; level < levels(); ++level) {
      const Tensor& goal = level == 0 ? dx : s.like_x;
      strided_copy(context, moves(s.levels[level], dy).reversed(), dy, s.levels[level]);
      pool_backward(context, window(dx.shape(), level), pass.bottom[0], index(pass.saved, level),
                    s.levels[level], goal);
      if (level > 0) add_to(context, goal, dx);
    }
  }
};

}  // namespace
REGISTER_LAYER(SPP, SPPLayer);
}  // namespace crema
