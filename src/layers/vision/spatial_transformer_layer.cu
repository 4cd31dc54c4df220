// SpatialTransformer: resamples each image by its own affine map, which another part of the net
// predicts.
//   y[n,c,h,w] = x[n,c] at row H * (u + 1) / 2 and column W * (v + 1) / 2, bilinear, 0 outside of x
//   (u, v) = A[n] * (2 h / H' - 1, 2 w / W' - 1, 1): rows come first, as in the forks
//   A: 2 x 3, row by row; entries theta_1_1 to theta_2_3 that the file gives are the same for every
//   image, the second bottom has the others in order
// Shapes: x (N, C, H, W), maps (N, 6 less the fixed entries), y (N, C, H', W') of output_H and
// output_W, by default the height and width of x.
// Parameters: none.
// Gradient: each dy goes with the same weights to the pixels it was read from, unless to_compute_dU
// is false; that of a map sums dy times the spatial derivatives of x at the source position.
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/reduce.h"
#include "layers/layer.h"
#include "layers/vision/affine_resampling.h"
#include "proto/params/forks_segmentation.pb.h"

namespace crema {
namespace {

constexpr int64_t kMaxPositions = int64_t{1} << 28;  // per channel: a few channels' fit 32 bits

class SpatialTransformerLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::resize, .keeps_channels = true};

 private:
  const SpatialTransformerParameter& p() const { return params<SpatialTransformerParameter>(); }
  Arity bottoms() const override { return {2, 2}; }
  bool differentiable(int bottom) const override { return bottom == 1 || p().to_compute_du(); }
  LayerTraits traits() const override { return {.reads = {true, false}}; }

  void setup(Context&, const std::vector<Shape>&) override {
    require(p().transform_type() == "affine", "transform_type is \"", p().transform_type(),
            "\", but only \"affine\" is supported");
    require(p().sampler_type() == "bilinear", "sampler_type is \"", p().sampler_type(),
            "\", but only \"bilinear\" is supported");
    const bool has[] = {p().has_theta_1_1(), p().has_theta_1_2(), p().has_theta_1_3(),
                        p().has_theta_2_1(), p().has_theta_2_2(), p().has_theta_2_3()};
    const double fixed[] = {p().theta_1_1(), p().theta_1_2(), p().theta_1_3(),
                            p().theta_2_1(), p().theta_2_2(), p().theta_2_3()};
    transformer_.given = 0;
    for (int k = 0; k < affine::kEntries; ++k) {
      transformer_.position[k] = has[k] ? -1 : static_cast<int>(transformer_.given++);
      transformer_.fixed[k] = fixed[k];
    }
    require(transformer_.given > 0,
            "the file gives all six entries of the map: leave out those "
            "that the second bottom should have");
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &x = bottoms[0], &maps = bottoms[1];
    require(x.axes() == 4, "SpatialTransformer takes images (N, C, H, W), but bottom 0 is ",
            x.brief());
    const int64_t height = p().has_output_h() ? p().output_h() : x[2],
                  width = p().has_output_w() ? p().output_w() : x[3];
    require(x[2] * x[3] < kMaxPositions && height * width < kMaxPositions, "images of ", x.brief(),
            " and tops of ", height, "x", width,
            " are too large: a channel may have 2^28 positions");
    require(height > 0 && width > 0, "output_H and output_W are ", height, " and ", width,
            ", but must be positive");
    require(maps.axes() >= 1 && maps[0] == x[0] && maps.count(1) == transformer_.given,
            "the maps, bottom 1, are ", maps.brief(), ", but must be ", x[0], "x",
            transformer_.given, ": for each image the entries that the file does not fix");
    return {{{x[0], x[1], height, width}}, {}};
  }

  affine::Transformer of(const Shape& x, const Shape& y) const {
    affine::Transformer t = transformer_;
    t.channels = x[1];
    t.height = x[2];
    t.width = x[3];
    t.out_height = y[2];
    t.out_width = y[3];
    t.by_groups = Divisor(t.groups());
    t.by_width = Divisor(t.width);
    t.by_out_width = Divisor(t.out_width);
    return t;
  }

  // Workspace: per image the gradient of each position's source coordinates.
  Prepared prepare(Context&, const Preparation& preparation) const override {
    Prepared prepared;
    if (!preparation.backward) return prepared;
    const Shape& y = preparation.tops[0];
    prepared.workspace = 2 * y[0] * y.count(2) * size_of(preparation.dtype);
    return prepared;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &x = pass.bottom[0], &y = pass.top[0];
    on(x, [&]<typename T>() {
      const affine::Transformer t = of(x.shape(), y.shape());
      parallel_rows(context, x.shape()[0] * t.groups(), t.out_positions(),
                    affine::Resample<T>{{t, pass.bottom[1].data<T>()}, x.data<T>(), y.data<T>()});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor &x = pass.bottom[0], &dy = pass.top_diff[0];
    const int64_t images = x.shape()[0];
    on(x, [&]<typename T>() {
      const affine::Maps<T> maps{of(x.shape(), dy.shape()), pass.bottom[1].data<T>()};
      const affine::Transformer& t = maps.t;
      if (const Tensor& dx = pass.bottom_diff[0]) {
        parallel_rows(context, images * t.groups(), t.positions(),
                      affine::ImageGradient<T>{maps, dy.data<T>(), dx.data<T>()});
      }
      if (const Tensor& d_maps = pass.bottom_diff[1]) {
        T* const moves = pass.workspace.data<T>();
        parallel_rows(context, images, t.out_positions(),
                      affine::SourceGradient<T>{maps, x.data<T>(), dy.data<T>(), moves});
        parallel_sum<T>(context, {images * t.given, 1, t.out_positions()},
                        affine::MapGradient<T>{t, moves}, {d_maps.data<T>()});
      }
    });
  }

  affine::Transformer transformer_{};
};

}  // namespace
REGISTER_LAYER(SpatialTransformer, SpatialTransformerLayer);
}  // namespace crema
