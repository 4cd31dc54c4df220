// Knn (MyCaffe): nearness of a vector to each class of the vectors stored in training.
//   training: stores the vectors and labels of the batch; y = 0
//   testing: d[n,j] = mean distance |x[n] - m| over the k nearest stored vectors m of the class,
//   or all of them if k is 0 or they are fewer; and with the minimum and maximum d of n:
//   y[n,j] = 1 - (d[n,j] - minimum) / (maximum - minimum), 1 if both are equal. j counts the
//   classes among the stored labels, from the lowest on; the rest of y is 0, all of it while
//   nothing is stored.
// Shapes: x (N, K...), labels (N...); y (N, num_output, 1, 1).
// Parameters, measured, not learned: how many batches are stored (1, 1, 1, 1); then x and labels of
// each of max_stored_batches batches, a ring buffer: forward pass p uses slot p modulo
// max_stored_batches.
// Gradient: none.
#include <algorithm>
#include <cmath>
#include <map>

#include "kernels/core/threads.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/reduce.h"
#include "layers/forks/metric/squared_between.h"
#include "layers/layer.h"
#include "proto/filler.pb.h"
#include "proto/params/forks_face.pb.h"
#include "tensor/part.h"

namespace crema {
namespace {

template <typename T>
struct CountBatch {
  T* count;
  T now;
  CREMA_HD void operator()(int64_t) const { *count = *count < now ? now : *count; }
};

constexpr int kMaxBatches = 10000;  // two blobs per batch

class KnnLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::metric, .labels = LabelKind::classes};

 private:
  const KnnParameter& p() const { return params<KnnParameter>(); }
  Arity bottoms() const override { return {2, 2}; }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override { return {.works_on_host = true}; }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    require(p().num_output() > 0 && p().max_stored_batches() > 0 &&
                p().max_stored_batches() <= kMaxBatches,
            "num_output of knn_param must be positive and max_stored_batches from 1 to ",
            kMaxBatches, ", but they are ", p().num_output(), " and ", p().max_stored_batches());
    require(bottoms[0].axes() > 0,
            "the first bottom must be vectors (N, K...), but it is a scalar");
    const FillerParameter& zeros = FillerParameter::default_instance();
    add_parameter({1, 1, 1, 1}, zeros, false);
    for (int i = 0; i < p().max_stored_batches(); ++i) {
      add_parameter(bottoms[0], zeros, false);
      add_parameter(bottoms[1], zeros, false);
    }
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &x = bottoms[0], &labels = bottoms[1];
    require(x == parameters()[1].shape && labels == parameters()[2].shape,
            "batches are remembered as they are, so training and test need the same shapes: those "
            "remembered are ",
            parameters()[1].shape.brief(), " with labels ", parameters()[2].shape.brief(),
            ", but here are ", x.brief(), " and ", labels.brief());
    require(labels.count() == x[0], "there must be one label for each of ", x[0], " vectors (",
            x.brief(), "), but the labels are ", labels.brief());
    return {{{x[0], p().num_output(), 1, 1}}, {}};
  }

  Prepared prepare(Context&, const Preparation& preparation) const override {
    const int64_t batch = preparation.bottoms[0][0];
    Prepared prepared;
    if (!training())
      prepared.workspace = static_cast<size_t>(batch * batch * p().max_stored_batches()) *
                           size_of(preparation.dtype);
    return prepared;
  }

  void forward(Context& context, const Forward& pass) const override {
    zero(context, pass.top[0]);
    if (training()) return remember(context, pass);
    const double remembered = to_doubles(context, pass.parameters[0])[0];
    const auto batches = std::min<double>(remembered, p().max_stored_batches());
    if (batches >= 1) compare(context, pass, static_cast<int64_t>(batches));
  }

  void remember(Context& context, const Forward& pass) const {
    const auto position = static_cast<int64_t>(pass.pass % p().max_stored_batches());
    copy(context, pass.bottom[0], pass.parameters[1 + 2 * position]);
    copy(context, pass.bottom[1], pass.parameters[2 + 2 * position]);
    on(pass.bottom[0], [&]<typename T>() {
      parallel_for(context, 1,
                   CountBatch<T>{pass.parameters[0].data<T>(), static_cast<T>(position + 1)});
    });
  }

  void compare(Context& context, const Forward& pass, int64_t batches) const {
    const Tensor& x = pass.bottom[0];
    const int64_t batch = x.shape()[0], inputs = x.shape().count(1);
    // The indices of each class's vectors.
    std::map<double, std::vector<int64_t>> classes;
    const Tensor squares = part_of(pass.workspace, 0, {batches, batch, batch}, x.dtype());
    for (int64_t i = 0; i < batches; ++i) {
      const std::vector<double> labels = to_doubles(context, pass.parameters[2 + 2 * i]);
      for (int64_t j = 0; j < batch; ++j)
        classes[label_of(labels[j])].push_back(i * batch * batch + j);
      on(x, [&]<typename T>() {
        parallel_sum<T>(
            context, {batch * batch, 1, inputs},
            SquaredBetween<T>{x.data<T>(), pass.parameters[1 + 2 * i].data<T>(), batch, inputs},
            {squares.data<T>() + i * batch * batch});
      });
    }
    require(static_cast<int>(classes.size()) <= p().num_output(), "the remembered labels have ",
            classes.size(), " classes, but num_output is ", p().num_output());
    const std::vector<double> all = to_doubles(context, squares);
    std::vector<double> y(batch * p().num_output());
    RegionError error;
#pragma omp parallel for
    for (int64_t n = 0; n < batch; ++n) {
      error.run([&] {
        std::vector<double> means;
        for (const auto& [label, positions] : classes)
          means.push_back(mean_of_nearest(all.data() + n * batch, positions));
        const auto [minimum, maximum] = std::minmax_element(means.begin(), means.end());
        const double range = *maximum - *minimum;
        for (size_t j = 0; j < means.size(); ++j)
          y[n * p().num_output() + j] = range > 0 ? 1 - (means[j] - *minimum) / range : 1;
      });
    }
    error.rethrow();
    from_doubles(context, y.data(), pass.top[0]);
  }

  // Truncated to an integer, as in Caffe.
  static double label_of(double value) {
    require(!std::isnan(value), "a label among those remembered is nan: labels are integers");
    return std::trunc(value);
  }

  double mean_of_nearest(const double* squares, const std::vector<int64_t>& positions) const {
    std::vector<double> near;
    for (int64_t position : positions) near.push_back(std::sqrt(squares[position]));
    const size_t k = p().k() > 0 ? std::min<size_t>(p().k(), near.size()) : near.size();
    std::partial_sort(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(k), near.end());
    double sum = 0;
    for (size_t i = 0; i < k; ++i) sum += near[i];
    return sum / static_cast<double>(k);
  }
};

}  // namespace
REGISTER_LAYER(Knn, KnnLayer);
}  // namespace crema
