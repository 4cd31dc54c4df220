// Decode and AccuracyEncoding (MyCaffe): distances of vectors to the mean vector of each label.
//   training: c[l] += (x[n] - c[l]) / min(m, M) for each vector of label l in order, where m counts
//   l's vectors from the beginning and M = N cache_size
//   d[n,l] = sum over i of (x[n,i] - c[l,i])^2, with c after the batch; 3.4e38 for labels
//   of ignore_label and those not seen yet
//   target PREGEN: c is a fixed lattice: c[l,i] = s (digit i of l in base b), with
//   s^2 slightly above 2 pregen_alpha and the smallest b that gives enough points
// Decode gives d and, on a second top, c: zeros in training before centroid_output_iteration and
// while a label seen so far has had fewer than M vectors. AccuracyEncoding moves c in testing too
// and gives the fraction of vectors whose label is the nearest.
// Shapes: x (N, K...), labels (N) or (N, D...), of which the first of each vector counts; testing
// Decode needs none. d (N, L), c (L, K, 1, 1), the fraction a scalar. L is label_count of
// decode_param, for PREGEN pregen_label_count.
// Parameters, measured, not learned: c (L, K, 1, 1), whether each label has had M vectors (L, 1, 1,
// 1), and m (L, 1, 1, 1).
// Gradient: none.
#include <cfloat>
#include <cmath>

#include "kernels/labels/equal_links.h"
#include "layers/forks/metric/squared_between.h"
#include "layers/layer.h"
#include "layers/loss/accuracy.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

// The label of each vector, -1 if it is out of range.
template <typename T>
struct FirstLabels {
  ClassLabels<T> labels;
  int64_t step;  // stride from a vector's label to the next one's
  LabelNote note;
  T* own;
  CREMA_HD void operator()(int64_t n) const {
    const int label = labels.at(n * step);
    if (label < 0) note.write(n * step, labels.labels[n * step]);
    own[n] = static_cast<T>(label < 0 ? -1 : label);
  }
};

// The first vector of each label in the batch handles all vectors of that label.
template <typename T>
struct MoveMeans {
  const T *x, *own;
  const int32_t *next, *first;  // of link_equal()
  const T* counts;
  int64_t inputs;
  T maximum;
  T* means;
  CREMA_HD void operator()(int64_t n, int64_t i) const {
    if (!first[n]) return;
    const auto label = static_cast<int64_t>(own[n]);
    T mean = means[label * inputs + i], count = counts[label];
    for (int64_t m = n; m >= 0; m = next[m]) {
      count += 1;
      mean += (x[m * inputs + i] - mean) / (count < maximum ? count : maximum);
    }
    means[label * inputs + i] = mean;
  }
};

template <typename T>
struct CountVectors {
  const T* own;
  const int32_t *next, *first;
  T maximum;
  T *counts, *complete;
  CREMA_HD void operator()(int64_t n) const {
    if (!first[n]) return;
    const auto label = static_cast<int64_t>(own[n]);
    T count = counts[label];
    for (int64_t m = n; m >= 0; m = next[m]) count += 1;
    counts[label] = count;
    complete[label] = count >= maximum ? T(1) : T(0);
  }
};

template <typename T>
struct LayOut {
  int64_t base;
  T step;
  T *means, *complete;
  int64_t inputs;
  CREMA_HD void operator()(int64_t label, int64_t i) const {
    int64_t rest = label;
    for (int64_t digit = 0; digit < i && rest > 0; ++digit) rest /= base;
    means[label * inputs + i] = step * static_cast<T>(rest % base);
    if (i == 0) complete[label] = 1;
  }
};

template <typename T>
struct KeepDistance {
  T* distances;
  const T* counts;  // null: all labels count
  int64_t labels;
  CREMA_HD void operator()(int64_t k, const double* sum) const {
    distances[k] = counts && counts[k % labels] == 0 ? T(FLT_MAX) : static_cast<T>(*sum);
  }
};

template <typename T>
struct LeaveOut {
  T* distances;
  int64_t labels, left_out;
  CREMA_HD void operator()(int64_t n) const { distances[n * labels + left_out] = T(FLT_MAX); }
};

// The labels seen so far, and how many of them have had too few vectors.
template <typename T>
struct Incomplete {
  const T *counts, *complete;
  template <typename>
  CREMA_HD T operator()(int64_t sum, int64_t, int64_t label) const {
    return sum == 0 ? T(counts[label] > 0) : T(counts[label] > 0 && complete[label] == 0);
  }
};

template <typename T>
struct NoneIncomplete {
  T* shows;
  CREMA_HD void operator()(int64_t, const double* sums) const {
    *shows = sums[0] > 0 && sums[1] == 0 ? T(1) : T(0);
  }
};

template <typename T>
struct ShowMeans {
  const T *means, *shows;  // shows: null if always shown
  uint64_t pass;
  const uint64_t* live_pass;
  uint64_t from;
  T* y;
  CREMA_HD void operator()(int64_t i) const {
    const bool late = (live_pass ? *live_pass : pass) >= from;
    y[i] = !shows || (late && *shows != 0) ? means[i] : T(0);
  }
};

class MeansOfLabels : public Layer {
 protected:
  const DecodeParameter& p() const { return params<DecodeParameter>(); }
  bool pregenerated() const { return p().target() == DecodeParameter::PREGEN; }
  int64_t labels() const { return pregenerated() ? p().pregen_label_count() : p().label_count(); }

  void add_means(const Shape& x) {
    require(p().target() != DecodeParameter::KNN,
            "target is KNN, but only CENTROID and PREGEN are ",
            "taken: its program never fills the list that it would look into; a Knn layer does");
    require(labels() > 0, pregenerated() ? "pregen_label_count" : "label_count", " is ", labels(),
            ": how many labels are there?");
    require(p().cache_size() > 0, "cache_size is ", p().cache_size(), ", but must be positive");
    const FillerParameter& zeros = FillerParameter::default_instance();
    add_parameter({labels(), x.count(1), 1, 1}, zeros, false);
    add_parameter({labels(), 1, 1, 1}, zeros, false);
    add_parameter({labels(), 1, 1, 1}, zeros, false);
  }

  void check_shapes(const std::vector<Shape>& bottoms) const {
    const Shape& x = bottoms[0];
    require(x.axes() > 0, "the bottom is one number, without an axis for the vectors");
    require(x.count(1) == parameters()[0].shape[1], "the bottom has shape ", x.brief(),
            ", that is vectors of ", x.count(1), " values, but the means have ",
            parameters()[0].shape[1]);
    require(bottoms.size() == 1 || (bottoms[1].axes() > 0 && bottoms[1][0] == x[0]),
            "there must be a label, or a row of labels, for each of ", x[0], " vectors (",
            x.brief(), "), but the labels are ", bottoms.back().brief());
  }

  LabelNote note(const Forward& pass) const {
    return {pass.saved[0].data<int32_t>(), labels(), pass.bottom[1].shape().count(1), pass.pass,
            pass.live_pass};
  }

  // Workspace: the vectors' labels and the linked lists of equal ones, after `more` further values.
  Prepared workspace(const Preparation& preparation, int64_t more) const {
    const int64_t batch = preparation.bottoms[0][0];
    Prepared prepared;
    prepared.workspace = static_cast<size_t>(more + batch) * size_of(preparation.dtype) +
                         static_cast<size_t>(2 * batch) * sizeof(int32_t);
    return prepared;
  }

  void move(Context& context, const Forward& pass, int64_t workspace_begin) const {
    const Tensor &x = pass.bottom[0], &means = pass.parameters[0];
    const int64_t batch = x.shape()[0], inputs = x.shape().count(1),
                  step = pass.bottom[1].shape().count(1);
    check_labels(pass.bottom[1], labels(), step, std::nullopt);
    on(x, [&]<typename T>() {
      T* const own = pass.workspace.data<T>() + workspace_begin;
      auto* const next = reinterpret_cast<int32_t*>(own + batch);
      const ClassLabels<T> classes{pass.bottom[1].data<T>(), labels()};
      parallel_for(context, batch, FirstLabels<T>{classes, step, note(pass), own});
      link_equal(context, 1, EqualLinks<T>{own, batch, labels(), next, next + batch});
      T *complete = pass.parameters[1].data<T>(), *counts = pass.parameters[2].data<T>();
      const T maximum = static_cast<T>(batch * p().cache_size());
      parallel_rows(context, batch, inputs,
                    MoveMeans<T>{x.data<T>(), own, next, next + batch, counts, inputs, maximum,
                                 means.data<T>()});
      parallel_for(context, batch,
                   CountVectors<T>{own, next, next + batch, maximum, counts, complete}, 64);
    });
  }

  void lay_out(Context& context, const Forward& pass) const {
    const Tensor& means = pass.parameters[0];
    const int64_t inputs = means.shape()[1];
    int64_t base = 2;
    while (std::pow(static_cast<double>(base), static_cast<double>(inputs)) <
           static_cast<double>(labels()))
      ++base;
    const double step = 1.01 * std::sqrt(2 * p().pregen_alpha());
    on(means, [&]<typename T>() {
      parallel_rows(context, labels(), inputs,
                    LayOut<T>{base, static_cast<T>(step), means.data<T>(),
                              pass.parameters[1].data<T>(), inputs});
    });
  }

  template <typename T>
  void find_distances(Context& context, const Forward& pass, T* distances) const {
    const Tensor& x = pass.bottom[0];
    const int64_t batch = x.shape()[0], inputs = x.shape().count(1);
    const T* counts = pregenerated() ? nullptr : pass.parameters[2].data<T>();
    parallel_sum<T>(context, {batch * labels(), 1, inputs},
                    SquaredBetween<T>{x.data<T>(), pass.parameters[0].data<T>(), labels(), inputs},
                    KeepDistance<T>{distances, counts, labels()});
  }

 private:
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override { return {.reads = {false, false}}; }
};

class DecodeLayer final : public MeansOfLabels {
  Arity bottoms() const override { return {training() ? 2 : 1, 2}; }
  Arity tops() const override { return {1, 2}; }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    add_means(bottoms[0]);
    for (int label : p().ignore_label())
      require(label >= 0 && label < labels(), "ignore_label is ", label, ", but labels are 0 to ",
              labels() - 1);
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    check_shapes(bottoms);
    std::vector<Shape> tops = {{bottoms[0][0], labels()}};
    if (message().top_size() > 1) tops.push_back(parameters()[0].shape);
    return {tops, {{{LabelNote::kCount}, DType::i32, true}}};
  }

  // The first value of the workspace later tells whether means are shown: labels and links are no
  // longer needed then.
  Prepared prepare(Context&, const Preparation& preparation) const override {
    return workspace(preparation, 0);
  }

  void forward(Context& context, const Forward& pass) const override {
    if (training() && pregenerated()) {
      lay_out(context, pass);
    } else if (training() && p().enable_centroid_update()) {
      move(context, pass, 0);
    }
    on(pass.top[0], [&]<typename T>() {
      T* distances = pass.top[0].data<T>();
      find_distances(context, pass, distances);
      for (int label : p().ignore_label())
        parallel_for(context, pass.bottom[0].shape()[0], LeaveOut<T>{distances, labels(), label});
      if (pass.top.size() > 1) show<T>(context, pass);
    });
  }

  template <typename T>
  void show(Context& context, const Forward& pass) const {
    T* const shows = pass.workspace.data<T>();
    const T *complete = pass.parameters[1].data<T>(), *counts = pass.parameters[2].data<T>();
    parallel_totals<T, 2>(context, 1, labels(), Incomplete<T>{counts, complete},
                          NoneIncomplete<T>{shows});
    const int from = training() ? p().centroid_output_iteration() : 0;
    parallel_for(
        context, pass.top[1].count(),
        ShowMeans<T>{pass.parameters[0].data<T>(), pregenerated() ? nullptr : shows, pass.pass,
                     pass.live_pass, static_cast<uint64_t>(from), pass.top[1].data<T>()});
  }

  void check(Context& context, const Forward& pass) const override {
    check_label_note(context, pass.saved[0]);
  }
};

class AccuracyEncodingLayer final : public MeansOfLabels {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::metric, .labels = LabelKind::classes};

 private:
  Arity bottoms() const override { return {2, 2}; }
  LayerTraits traits() const override {
    return {.reads = {false, false}, .changes_parameters = true};
  }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    const AccuracyParameter& accuracy = params<AccuracyParameter>();
    require(accuracy.top_k() == 1 && accuracy.axis() == 1, "top_k is ", accuracy.top_k(),
            " and axis ", accuracy.axis(),
            ", but AccuracyEncoding only knows the nearest label: both must be 1");
    require(!pregenerated(),
            "target is PREGEN, but AccuracyEncoding compares with means: remove it");
    add_means(bottoms[0]);
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    check_shapes(bottoms);
    return {{Shape()}, {{{LabelNote::kCount}, DType::i32, true}}};
  }

  // The distances, and the workspace of find_hits.
  Prepared prepare(Context&, const Preparation& preparation) const override {
    return workspace(preparation, preparation.bottoms[0][0] * (labels() + 1));
  }

  void forward(Context& context, const Forward& pass) const override {
    move(context, pass, pass.bottom[0].shape()[0] * (labels() + 1));
    on(pass.bottom[0], [&]<typename T>() {
      const int64_t batch = pass.bottom[0].shape()[0];
      T* const distances = pass.workspace.data<T>();
      find_distances(context, pass, distances);
      const ScoredExamples<T> of{
          distances, pass.bottom[1].data<T>(),       labels(), 1, 1, false, 0,
          true,      pass.bottom[1].shape().count(1)};
      const ExampleHit<T> hit =
          find_hits(context, of, batch, distances + batch * labels(), note(pass));
      parallel_totals<T, 2>(context, 1, batch, hit, HitShare<T>{pass.top[0].data<T>()});
    });
  }

  void check(Context& context, const Forward& pass) const override {
    check_label_note(context, pass.saved[0]);
  }
};

}  // namespace
REGISTER_LAYER(Decode, DecodeLayer);
REGISTER_LAYER(AccuracyEncoding, AccuracyEncodingLayer);
}  // namespace crema
