// Base of the layers that pool RoIs of a feature map: two bottoms, the map and the RoIs; the
// kernel's case is pool_, which setup() fills.
#pragma once

#include "base/error.h"
#include "kernels/roi/roi_pool.h"
#include "layers/layer.h"

namespace crema {

class RoiPoolingBase : public Layer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::pooling, .keeps_channels = true, .regions = 5};

  Arity bottoms() const override { return {2, 2}; }
  bool differentiable(int bottom) const override { return bottom == 0; }
  LayerTraits traits() const override {
    return {.order_rule = order_rule_, .half_rule = HalfRule::follows, .reads = {false, false}};
  }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    // RoIs must be stored row by row whatever the order of the map.
    const bool alike = same_layout(Format::channels_last(), Format::row_major(), bottoms[1]);
    order_rule_ = alike ? OrderRule::any : OrderRule::row_major;
    require(bottoms[0].axes() == 4, type(), " needs a feature map (N, C, H, W), but bottom 0 is ",
            bottoms[0].brief());
    pool_ = read();
    require(pool_.rows > 0 && pool_.columns > 0, type(),
            " needs the size of the grid: ", "pooled_h and pooled_w must be positive, but are ",
            pool_.rows, " and ", pool_.columns);
    require(pool_.scale > 0, "spatial_scale must be positive, but is ", pool_.scale);
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& regions = bottoms[1];
    const int64_t numbers = pool_.numbers();
    const bool rows = regions.axes() > 0 && regions.count(1) == numbers;
    require(rows || (regions.axes() > 1 && regions[regions.axes() - 1] == numbers),
            "the regions must be rows of ", numbers,
            numbers == 5 ? " numbers (image, x1, y1, x2, y2)" : " numbers (image, two boxes)",
            ", but bottom 1 is ", regions.brief());
    const int64_t count = regions.count() / numbers;
    const Shape y{count, top_channels(bottoms[0][1]), pool_.rows, pool_.columns};
    const auto tables = static_cast<int64_t>(roi_pool_tables(pool_, bottoms[0], count));
    Inference inference{{y}, {{{tables}, DType::u8}}};
    if (pool_.has_index()) inference.saved.push_back({y, DType::i32});
    return inference;
  }

  void forward(Context& context, const Forward& pass) const override {
    roi_pool_forward(context, pool_, pass.bottom[0], pass.bottom[1], pass.top[0], index(pass.saved),
                     pass.saved[0]);
  }

  void backward(Context& context, const Backward& pass) const override {
    if (!pass.bottom_diff[0]) return;
    roi_pool_backward(context, pool_, index(pass.saved), pass.top_diff[0], pass.bottom_diff[0],
                      pass.saved[0]);
  }

 protected:
  // The case that the layer's message describes.
  virtual RoiPool read() const = 0;
  virtual int64_t top_channels(int64_t channels) const { return channels; }

  template <typename Message>
  static RoiPool pool_of(RoiPoolKind kind, const Message& p) {
    require(p.pad_ratio() >= 0, "pad_ratio must not be negative, but is ", p.pad_ratio());
    return {kind, p.pooled_h(), p.pooled_w(), p.spatial_scale(), p.pad_ratio()};
  }

 private:
  static Tensor index(const std::vector<Tensor>& saved) {
    return saved.size() > 1 ? saved[1] : Tensor();
  }

  RoiPool pool_;
  OrderRule order_rule_ = OrderRule::row_major;
};

}  // namespace crema
