// Interp: resizes images by bilinear interpolation with aligned corners.
//   y[h, w] = x between rows i, i+1 and columns j, j+1   with i = h * (H-1) / (H'-1), j likewise
// The size is that of the second bottom (use_blob_size), or height and width, or
//   shrink_factor: H' = (H - 1) / shrink_factor + 1     then, or alone
//   zoom_factor:   H' = H + (H - 1) * (zoom_factor - 1)
// pad_beg and pad_end, zero or negative, first cut rows and columns off x. BilinearInterpolation is
// the same: interpolation_factor times as large, or of the second bottom's size.
// Shapes: x (N, C, H, W), y (N, C, H', W').
// Parameters: none.
// Gradient: each dy is distributed with the interpolation weights to the pixels it came from; none
// for the second bottom.
#include "kernels/move/interpolate.h"
#include "layers/layer.h"
#include "proto/params/forks_segmentation.pb.h"

namespace crema {
namespace {

class BilinearLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::resize, .keeps_channels = true};

 private:
  Arity bottoms() const override { return {1, 2}; }
  bool differentiable(int bottom) const override { return bottom == 0; }
  bool reads_values(int bottom) const override { return bottom == 0; }
  LayerTraits traits() const override {
    return {.order_rule = OrderRule::any, .half_rule = HalfRule::follows, .reads = {false, false}};
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    require(x.axes() == 4, type(), " takes images (N, C, H, W), but the bottom is ", x.brief());
    const int64_t cut_away = cut().before + cut().behind;
    require(x[2] > cut_away && x[3] > cut_away, "pad_beg and pad_end leave nothing of the bottom, ",
            x.brief());
    Shape y = x;
    for (const int axis : {2, 3}) {
      y[axis] = extent(bottoms, axis, x[axis] - cut_away);
      require(y[axis] > 0, "the top would have extent ", y[axis], " on axis ", axis,
              ": at least 1 is needed");
    }
    return {{y}, {}};
  }

  void forward(Context& context, const Forward& pass) const override {
    interpolate(context, cut(), pass.bottom[0], pass.top[0]);
  }
  void backward(Context& context, const Backward& pass) const override {
    interpolate_gradient(context, cut(), pass.top_diff[0], pass.bottom_diff[0]);
  }

 protected:
  virtual InterpolationCut cut() const { return {}; }
  // Extent of the top along axis 2 or 3, for an extent `in` of the first bottom after cutting.
  virtual int64_t extent(const std::vector<Shape>& bottoms, int axis, int64_t in) const = 0;

  static int64_t extent_of_second(const std::vector<Shape>& bottoms, int axis) {
    require(bottoms[1].axes() == 4,
            "the second bottom, which gives the size, must be (N, C, H, W), but is ",
            bottoms[1].brief());
    return bottoms[1][axis];
  }
};

class InterpLayer : public BilinearLayer {
  const InterpParameter& p() const { return params<InterpParameter>(); }
  InterpolationCut cut() const override {
    return {-int64_t{p().pad_beg()}, -int64_t{p().pad_end()}};
  }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    require(p().pad_beg() <= 0 && p().pad_end() <= 0, "pad_beg is ", p().pad_beg(), " and pad_end ",
            p().pad_end(), ", but only zero and negative numbers, which cut, have a meaning");
    require(p().zoom_factor() >= 1 && p().shrink_factor() >= 1, "zoom_factor is ",
            p().zoom_factor(), " and shrink_factor ", p().shrink_factor(),
            ", but both must be at least 1");
    require(!p().use_blob_size() || bottoms.size() == 2,
            "use_blob_size needs a second bottom, whose height and width are taken");
    require(
        bottoms.size() == 2 || p().has_zoom_factor() || p().has_shrink_factor() ||
            (p().has_height() && p().has_width()),
        "Interp needs a size: height and width, zoom_factor, shrink_factor, or a second bottom");
  }

  int64_t extent(const std::vector<Shape>& bottoms, int axis, int64_t in) const override {
    const bool both = p().has_zoom_factor() && p().has_shrink_factor();
    const bool one = p().has_zoom_factor() != p().has_shrink_factor();
    const bool given = p().has_height() && p().has_width();
    if (p().use_blob_size() || (!one && !given && !both)) return extent_of_second(bottoms, axis);
    if (given && !one) return axis == 2 ? p().height() : p().width();
    const int64_t shrunk = (in - 1) / p().shrink_factor() + 1;
    return shrunk + (shrunk - 1) * (p().zoom_factor() - 1);
  }
};

class BilinearInterpolationLayer : public BilinearLayer {
  const BilinearInterpolationParameter& p() const {
    return params<BilinearInterpolationParameter>();
  }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    require(bottoms.size() == 2 || p().interpolation_factor() > 0,
            "BilinearInterpolation needs a second bottom, whose height and width are taken, or "
            "bilinear_interpolation_param { interpolation_factor: 2 }, for example");
  }

  int64_t extent(const std::vector<Shape>& bottoms, int axis, int64_t in) const override {
    return bottoms.size() == 2 ? extent_of_second(bottoms, axis) : in * p().interpolation_factor();
  }
};

}  // namespace
REGISTER_LAYER(Interp, InterpLayer);
REGISTER_LAYER(BilinearInterpolation, BilinearInterpolationLayer);
}  // namespace crema
