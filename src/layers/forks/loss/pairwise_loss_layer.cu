// PairwiseLoss (HashNet): codes of images that share a label should have a large product, others a
// small one.
//   loss = l_lambda / W * sum over i and j of w * (log(1 + exp(t)) - s * t)
//   t = sigmoid_param * <u[i], v[j]>; s = 1 if label vectors a[i] and b[j] have a positive product,
//   else 0; w = class_num for s = 1, else 1; W is the sum of w
//   A pair whose product of labels is negative, or as large as a label vector is long, is unknown
//   and does not count. continous_similarity multiplies w in the sum, not in W, by 4 c, where c =
//   <a, b>^2 / (|a|^2 |b|^2), or 1/4 if the two share nothing.
// Shapes: codes u (N, K), labels a (N, L), codes v (N, K), labels b (N, L); the loss is a scalar.
// Parameters: none.
// Gradient: du[i] = l_lambda * sigmoid_param / W * sum over j of w * (sigmoid(t)
// - s) * v[j], dv likewise; none for labels. (HashNet's program has twice that gradient: use
// loss_weight: 2 for the same steps. Its gradient, but not its loss, has 4 c.)
#include "kernels/pointwise/pointwise_math.h"
#include "layers/loss/loss_layer.h"
#include "proto/params/forks_hashing.pb.h"

namespace crema {
namespace {

template <typename T>
CREMA_HD T product(const T* a, const T* b, int64_t count) {
  T sum = 0;
  for (int64_t k = 0; k < count; ++k) sum += a[k] * b[k];
  return sum;
}

template <typename T>
struct CodePairs {
  const T *u, *v, *a, *b;
  int64_t batch, codes, labels;  // N, K, L
  T steepness, similar, lambda;
  bool shares;      // continous_similarity
  const T* slopes;  // gradient of the loss with respect to the product of each pair
  bool second;      // gradient: of v

  CREMA_HD T overlap(int64_t i, int64_t j) const {
    return product(a + i * labels, b + j * labels, labels);
  }
  CREMA_HD bool is_known(T overlap) const { return overlap >= 0 && overlap < T(labels); }
  CREMA_HD T counted(int64_t i, int64_t j) const {
    const T both = overlap(i, j);
    return !is_known(both) ? T(0) : both > 0 ? similar : T(1);
  }
  CREMA_HD T weight(int64_t i, int64_t j) const {
    const T both = overlap(i, j), w = lambda * counted(i, j);
    if (!shares || !is_known(both)) return w;
    const T of_a = product(a + i * labels, a + i * labels, labels);
    const T of_b = product(b + j * labels, b + j * labels, labels);
    return both > 0 ? w * 4 * both * both / (of_a * of_b) : w;
  }
  CREMA_HD T exponent(int64_t i, int64_t j) const {
    return steepness * product(u + i * codes, v + j * codes, codes);
  }
  CREMA_HD T loss(int64_t i, int64_t j) const {
    const T t = exponent(i, j), size = t < 0 ? -t : t;
    const T softplus = (t > 0 ? t : T(0)) + log(1 + exp(-size));
    return weight(i, j) * (softplus - (overlap(i, j) > 0 ? t : T(0)));
  }
  CREMA_HD T slope(int64_t i, int64_t j) const {
    const T t = exponent(i, j), small = exp(t < 0 ? t : -t);
    const T sigmoid = (t < 0 ? small : T(1)) / (1 + small);
    return steepness * weight(i, j) * (sigmoid - (overlap(i, j) > 0 ? T(1) : T(0)));
  }
  CREMA_HD T gradient(int64_t row, int64_t k, const LossScale<T>& scale) const {
    T sum = 0;
    for (int64_t other = 0; other < batch; ++other) {
      sum += second ? slopes[other * batch + row] * u[other * codes + k]
                    : slopes[row * batch + other] * v[other * codes + k];
    }
    return scale.value() * sum;
  }
};

template <typename T>
struct SlopesBody {
  CodePairs<T> pairs;
  T* slopes;
  CREMA_HD void operator()(int64_t i, int64_t j) const {
    slopes[i * pairs.batch + j] = pairs.slope(i, j);
  }
};

class PairwiseLossLayer : public TermLoss<PairwiseLossLayer> {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::loss, .labels = LabelKind::answers};

  Arity bottoms() const override { return {4, 4}; }
  bool differentiable(int bottom) const override { return bottom == 0 || bottom == 2; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &u = bottoms[0], &a = bottoms[1], &v = bottoms[2], &b = bottoms[3];
    require(u.axes() > 0 && u.axes() == v.axes() && u[0] == v[0] && u.count() == v.count(),
            "codes, bottoms 0 and 2, must have the same batch and as many values, but they are ",
            u.brief(), " and ", v.brief());
    require(a.axes() > 0 && b.axes() > 0 && a[0] == u[0] && b[0] == u[0] && a.count() == b.count(),
            "bottoms 1 and 3 must have a label vector for each of the ", u[0],
            " codes, equally long, but are ", a.brief(), " and ", b.brief());
    require(p().class_num() > 0, "class_num is ", p().class_num(), ", but must be positive");
    return {{Shape()}, {loss_sums(), {{u[0], u[0]}, {}}}};
  }

  SumExtent extent(const Shape& u) const { return {1, u[0], u[0]}; }
  SumExtent gradient_extent(const Shape& u) const { return {1, u[0], u.count(1)}; }
  LossNormalizer normalizer(const Shape&) const { return {true, 1}; }

  LossParts loss_parts(const std::vector<Shape>&) const override {
    return LossParts::none(
        "it compares each sample of the batch with all others, and each rank has only some of "
        "them; "
        "train with -batch_mode per_gpu");
  }

  template <typename T>
  CodePairs<T> terms(const LossInput& in) const {
    const Shape& u = in.bottom[0].shape();
    CodePairs<T> pairs{};
    pairs.u = in.at<T>(0), pairs.a = in.at<T>(1), pairs.v = in.at<T>(2), pairs.b = in.at<T>(3);
    pairs.batch = u[0], pairs.codes = u.count(1), pairs.labels = in.bottom[1].shape().count(1);
    pairs.steepness = static_cast<T>(p().sigmoid_param());
    pairs.similar = static_cast<T>(p().class_num());
    pairs.lambda = static_cast<T>(p().l_lambda());
    pairs.shares = p().continous_similarity();
    pairs.slopes = in.saved[1].data<T>();
    pairs.second = in.of == 2;
    return pairs;
  }

  void forward(Context& context, const Forward& pass) const override {
    on(pass.bottom[0], [&]<typename T>() {
      const int64_t batch = pass.bottom[0].shape()[0];
      parallel_rows(context, batch, batch,
                    SlopesBody<T>{terms<T>(loss_input(pass)), pass.saved[1].data<T>()});
    });
    TermLoss::forward(context, pass);
  }

 private:
  const PairwiseParameter& p() const { return params<PairwiseParameter>(); }
};

}  // namespace
REGISTER_LAYER(PairwiseLoss, PairwiseLossLayer);
}  // namespace crema
