// MalisLoss: learns links between adjacent voxels that connect segments internally and separate
// them (forks for microscopy; layers/forks/loss/malis.h).
//   loss = mean over images of (apart(max(a, t)) + together(min(a, t))) / 2
//   together  mean over pairs of voxels of one segment of (1 - affinity)^2
//   apart     mean over pairs of voxels of different segments of affinity^2
//   where the affinity of two voxels is the weakest link of the path between them whose weakest
//   link is strongest
// Shapes: affinities a (N, K, (Z,) (Y,) X) from 0 to 1, one for each of K links of a voxel, the
// true ones t likewise (others are an error), segments (N, 1 or 2, (Z,) (Y,) X), integers, 0 for
// none; of 2 channels `apart` takes the first, `together` the second. A fourth bottom has K * 3
// steps z, y, x to the linked voxel; without it they are +X, of K = 2 +Y and +X, of 3 +Z, +Y and
// +X. The loss is a scalar; a second top is a.
// Parameters: none.
// Gradient: as in the forks, for a link, whether a or t decided it: the fraction of the pairs that
// it connects times (affinity - 1 or 0) / 2 / N, times the loss weight; half the derivative by a.
// None for the other bottoms, none from the second top.
#include "kernels/core/threads.h"
#include "kernels/labels/targets.h"
#include "kernels/pointwise/pointwise.h"
#include "layers/forks/loss/malis.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

template <typename T>
struct TimesWeight {
  const T* weight;
  CREMA_HD T operator()(T x) const { return x * *weight; }
};

class MalisLossLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::loss};

 private:
  Arity bottoms() const override { return {3, 4}; }
  Arity tops() const override { return {1, 2}; }
  bool is_loss() const override { return true; }
  LayerTraits traits() const override { return {.reads = {false, false}, .works_on_host = true}; }
  bool differentiable(int bottom) const override { return bottom == 0; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& a = bottoms[0];
    require(a.axes() >= 3 && a.axes() <= 5,
            "MalisLoss takes affinities (N, K, (Z,) (Y,) X), but bottom 0 is ", a.brief());
    require(bottoms[1] == a, "the true affinities, ", bottoms[1].brief(),
            ", must be like the predicted ones, ", a.brief());
    const int64_t voxels = a.count(2), kinds = a[1];
    require(bottoms[2].axes() >= 2 && bottoms[2][0] == a[0] &&
                (bottoms[2].count(1) == voxels || bottoms[2].count(1) == 2 * voxels),
            "there must be one segment for each voxel, or two, with affinities ", a.brief(),
            ", but they are ", bottoms[2].brief());
    if (bottoms.size() > 3) {
      require(bottoms[3].count() == 3 * kinds, "there must be 3 numbers for each of ", kinds,
              " links, but the steps are ", bottoms[3].brief());
    } else {
      require(kinds <= 3, "affinities of ", kinds,
              " links need a fourth bottom with their steps, z, y and x of each");
    }
    std::vector<Shape> tops = {Shape()};
    if (message().top_size() > 1) tops.push_back(a);
    return {tops, {{a, {}}}};
  }

  LossParts loss_parts(const std::vector<Shape>&) const override {
    return LossParts::all(PartsRule::mean);
  }

  static VoxelLinks links(Context& context, const std::vector<Tensor>& bottom) {
    const Shape& a = bottom[0].shape();
    VoxelLinks links;
    for (int axis = 0; axis < 3; ++axis) {
      const int from_end = 3 - axis;
      links.extent[axis] = a.axes() - from_end >= 2 ? a[a.axes() - from_end] : 1;
    }
    std::vector<double> steps;
    if (bottom.size() > 3) {
      steps = to_doubles(context, bottom[3]);
    } else {
      for (int64_t axis = 3 - a[1]; axis < 3; ++axis)
        for (int64_t i = 0; i < 3; ++i) steps.push_back(i == axis ? 1 : 0);
    }
    for (size_t i = 0; i < steps.size(); i += 3) {
      links.steps.push_back({static_cast<int64_t>(steps[i]), static_cast<int64_t>(steps[i + 1]),
                             static_cast<int64_t>(steps[i + 2])});
    }
    return links;
  }

  void forward(Context& context, const Forward& pass) const override {
    const std::vector<double> a = to_doubles(context, pass.bottom[0]),
                              segments = to_doubles(context, pass.bottom[2]);
    std::vector<double> truth = to_doubles(context, pass.bottom[1]);
    const VoxelLinks of = links(context, pass.bottom);
    const int64_t images = pass.bottom[0].shape()[0], each = pass.bottom[0].shape().count(1),
                  voxels = of.voxels(), known = pass.bottom[2].shape().count(1);
    check_targets(truth, {.advice = "true affinities say how sure two voxels are of one segment"},
                  each);
    std::vector<double> losses(2 * images), gradient(a.size());
    std::vector<std::vector<double>> pulls(2 * images);
    RegionError error;
#pragma omp parallel for schedule(dynamic)
    for (int64_t task = 0; task < 2 * images; ++task) {
      error.run([&] {
        const bool together = task % 2 == 1;
        const int64_t image = task / 2;
        std::vector<double> affinity(each);
        for (int64_t i = 0; i < each; ++i) {
          const double x = a[image * each + i], t = truth[image * each + i];
          affinity[i] = together == (x < t) ? x : t;
        }
        pulls[task].resize(each);
        losses[task] = malis(
            of, affinity.data(), segments.data() + image * known + (together ? known - voxels : 0),
            together ? VoxelPairs::of_one_segment : VoxelPairs::of_different_segments,
            pulls[task].data());
      });
    }
    error.rethrow();
    double loss = 0;
    const auto share = 1 / (2 * static_cast<double>(images));
    for (int64_t task = 0; task < 2 * images; ++task) {
      loss += losses[task] * share;
      for (int64_t i = 0; i < each; ++i) gradient[task / 2 * each + i] -= pulls[task][i] * share;
    }
    from_doubles(context, &loss, pass.top[0]);
    from_doubles(context, gradient.data(), pass.saved[0]);
    if (pass.top.size() > 1) copy(context, pass.bottom[0], pass.top[1]);
  }

  void backward(Context& context, const Backward& pass) const override {
    if (!pass.bottom_diff[0]) return;
    on(pass.bottom_diff[0], [&]<typename T>() {
      parallel_for(context, pass.saved[0].count(),
                   PointwiseBody1<TimesWeight<T>, T>{{pass.top_diff[0].data<T>()},
                                                     pass.bottom_diff[0].data<T>(),
                                                     pass.saved[0].data<T>()});
    });
  }
};

}  // namespace
REGISTER_LAYER(MalisLoss, MalisLossLayer);
}  // namespace crema
