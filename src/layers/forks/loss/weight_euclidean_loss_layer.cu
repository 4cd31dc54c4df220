// WeightEuclideanLoss (a fork): a weighted squared distance between the 68 landmarks of faces.
//   loss = 1 / (2N) * sum of w / s * m * (a - b)^2
//   w: contour_weight for landmarks 0 to 16, main_weight for the others, coarse_weight (if it is
//   not 0) for 17, 21, 22, 26, 27, 31, 35, 36, 39, 42, 45, 48 and 54. s: 1, or with normalized: 1
//   the size of the face b: with normalized_type 0 the distance of (x of landmark 36, y of 39) from
//   (x of 42, y of 45), otherwise that of (min x, min y), at most 1, from (max x, max y), at least
//   0.
// Shapes: a and b (N, 136), all x and then all y; m has as many, and is 1 without a third bottom;
// the loss is a scalar.
// Parameters: none.
// Gradient: da = w / s * m * (a - b) / N (the fork omits m), db = -da, times the loss weight; none
// for m, and for b none through s.
#include <cfloat>

#include "layers/loss/pair_loss.h"
#include "proto/params/forks_face.pb.h"

namespace crema {
namespace {

constexpr int64_t kLandmarks = 68;

template <typename T>
struct FaceSize {
  const T* faces;
  bool box;
  T* sizes;
  CREMA_HD void operator()(int64_t n) const {
    const T *x = faces + n * 2 * kLandmarks, *y = x + kLandmarks;
    T left = x[36], top = y[39], right = x[42], bottom = y[45];
    if (box) {
      left = top = 1, right = bottom = 0;
      for (int64_t i = 0; i < kLandmarks; ++i) {
        left = x[i] < left ? x[i] : left, right = x[i] > right ? x[i] : right;
        top = y[i] < top ? y[i] : top, bottom = y[i] > bottom ? y[i] : bottom;
      }
    }
    const T wide = left - right, high = top - bottom, size = sqrt(wide * wide + high * high);
    sizes[n] = size > T(FLT_MIN) ? size : T(FLT_MIN);
  }
};

template <typename T>
struct LandmarkTerms {
  const T *a, *b, *mask, *sizes;  // mask and sizes: may be null
  T contour, main, coarse;
  CREMA_HD T weight(int64_t landmark) const {
    // One bit for each landmark from 17 to 54: whether it is coarse.
    constexpr uint64_t kCoarse = 0x20924c4631;
    const int64_t bit = landmark - 17;
    if (coarse != 0 && bit >= 0 && bit < 38 && (kCoarse >> bit & 1)) return coarse;
    return bit < 0 ? contour : main;
  }
  CREMA_HD T slope(int64_t n, int64_t i) const {
    const int64_t at = n * 2 * kLandmarks + i;
    const T w = weight(i % kLandmarks) * (mask ? mask[at] : T(1));
    return (sizes ? w / sizes[n] : w) * (a[at] - b[at]);
  }
  CREMA_HD T loss(int64_t n, int64_t i) const {
    const int64_t at = n * 2 * kLandmarks + i;
    return slope(n, i) * (a[at] - b[at]);
  }
  CREMA_HD T gradient(int64_t n, int64_t i, const LossScale<T>& scale) const {
    return scale.value() * slope(n, i);
  }
};

class WeightEuclideanLossLayer : public PairLoss<WeightEuclideanLossLayer> {
 public:
  Arity bottoms() const override { return {2, 3}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& a = bottoms[0];
    for (const Shape& shape : bottoms) {
      require(shape.axes() > 0 && shape[0] == a[0] && shape.count(1) == 2 * kLandmarks,
              "each bottom must have x of 68 landmarks and then y, (N, 136), with the same N, but "
              "one is ",
              shape.brief());
    }
    return {{Shape()}, {{{a[0]}, {}}}};  // saved: sizes of the faces
  }

  SumExtent extent(const Shape& a) const { return {1, a[0], 2 * kLandmarks}; }
  double factor() const { return 0.5; }
  template <typename T>
  LandmarkTerms<T> terms(const LossInput& in) const {
    return {in.at<T>(0),
            in.at<T>(1),
            in.at<T>(2),
            p().normalized() == 1 ? in.saved[0].data<T>() : nullptr,
            static_cast<T>(p().contour_weight()),
            static_cast<T>(p().main_weight()),
            static_cast<T>(p().coarse_weight())};
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &faces = pass.bottom[1], &sizes = pass.saved[0];
    on(faces, [&]<typename T>() {
      const FaceSize<T> size{faces.data<T>(), p().normalized_type() != 0, sizes.data<T>()};
      parallel_for(context, sizes.count(), size, 64);
    });
    TermLoss::forward(context, pass);
  }

 private:
  const WeightEuclideanLossParameter& p() const { return params<WeightEuclideanLossParameter>(); }
};

}  // namespace
REGISTER_LAYER(WeightEuclideanLoss, WeightEuclideanLossLayer);
}  // namespace crema
