// SegAccuracy (forks): classification accuracy of positions, such as pixels.
//   y = (fraction of correct positions,
//        mean over the classes that occur of their fraction of correct positions,
//        mean over all classes of intersection over union: correct positions / positions that have
//        or are predicted the class (1 if none))
// The prediction is the class with the highest score; with one channel it is 1 above 0.5, else 0.
// Shapes: scores (N, C, ...), labels with one value per position; y (1, 1, 1, 3). Positions whose
// label is one of seg_accuracy_param.ignore_label do not count.
// Parameters: none.
// Gradient: none.
#include <algorithm>
#include <vector>

#include "kernels/core/threads.h"
#include "kernels/labels/counts.h"
#include "kernels/labels/labels.h"
#include "kernels/reduce/largest_of_lines.h"
#include "kernels/reduce/reduce.h"
#include "layers/layer.h"
#include "layers/loss/label_shapes.h"
#include "proto/params/forks_segmentation.pb.h"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr int kMaxIgnored = 32;

struct IgnoredLabels {
  int count = 0;
  int labels[kMaxIgnored];
  CREMA_HD bool has(double value) const {
    bool found = false;
    for (int i = 0; i < kMaxIgnored; ++i) found = found || (i < count && labels[i] == value);
    return found;
  }
};

// Counts for C classes: k < C: positions of class k; C <= k < 2C: positions predicted as class k -
// C; the next C: both; the last one: labels out of range.
template <typename T>
struct Confusion {
  const T *scores, *labels;
  int64_t channels, classes, inner;
  IgnoredLabels ignored;
  LabelNote note;
  CREMA_HD int64_t only_class(T score) const { return channels == 1 && score > T(0.5) ? 1 : 0; }
  CREMA_HD void operator()(int64_t position, const Counter& counter) const {
    const T* score = scores + position / inner * channels * inner + position % inner;
    T maximum = *score;
    int64_t best = only_class(maximum);
    for (int64_t k = 1; k < channels; ++k) {
      const T value = score[k * inner];
      best = value > maximum ? k : best;
      maximum = value > maximum ? value : maximum;
    }
    count(position, best, counter);
  }
  CREMA_HD void count(int64_t position, int64_t best, const Counter& counter) const {
    const T label = labels[position];
    if (ignored.count > 0 && ignored.has(label)) return;
    if (!is_class(label, classes)) {
      note.write(position, label);
      counter.add(3 * classes);
      return;
    }
    const auto is = static_cast<int64_t>(label);
    counter.add(is);
    counter.add(classes + best);
    if (is == best) counter.add(2 * classes + is);
  }
};

// The counts on the CPU, many positions at a time.
template <typename T>
void count_positions(const Confusion<T>& of, int64_t images, int64_t bins, int32_t* counts) {
  std::fill(counts, counts + bins, 0);
  const int64_t groups = (of.inner + kListsTogether - 1) / kListsTogether;
  RegionError error;
#pragma omp parallel
  {
    std::vector<int32_t> own;
    error.run([&] { own.resize(bins); });
    T maximum[kListsTogether];
    int32_t best[kListsTogether];
#pragma omp for schedule(static) nowait
    for (int64_t task = 0; task < images * groups; ++task) {
      if (own.empty()) continue;
      const int64_t image = task / groups, first = task % groups * kListsTogether;
      const int64_t count = std::min(kListsTogether, of.inner - first);
      largest_of_lines<false>(of.scores + image * of.channels * of.inner + first, of.channels,
                              of.inner, count, maximum, best);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t answer = of.channels == 1 ? of.only_class(maximum[i]) : best[i];
        of.count(image * of.inner + first + i, answer, Counter{own.data()});
      }
    }
#pragma omp critical(crema_places)
    for (int64_t bin = 0; bin < std::ssize(own); ++bin) counts[bin] += own[bin];
  }
  error.rethrow();
}

// Sums over the classes: positions, correct positions, classes that occur, shares of correct
// positions among those of the class and among the union of its labels and predictions.
struct ClassShares {
  const int32_t* counts;
  int64_t classes;
  template <typename T>
  CREMA_HD T operator()(int64_t sum, int64_t, int64_t k) const {
    const T is = counts[k], gets = counts[classes + k], both = counts[2 * classes + k];
    const T either = is + gets - both;
    return sum == 0   ? is
           : sum == 1 ? both
           : sum == 2 ? (is > 0 ? T(1) : T(0))
           : sum == 3 ? (is > 0 ? both / is : T(0))
                      : (either > 0 ? both / either : T(1));
  }
};

template <typename T>
struct Shares {
  const int32_t* bad;
  int64_t classes;
  T* y;
  CREMA_HD void operator()(int64_t, const double* sums) const {
    const double total = sums[0], occurring = sums[2];
    const double known = *bad > 0 ? static_cast<double>(NAN) : 1;
    y[0] = static_cast<T>(known * (total == 0 ? 0 : sums[1] / total));
    y[1] = static_cast<T>(known * (total == 0 ? 0 : sums[3] / (occurring > 0 ? occurring : 1)));
    y[2] = static_cast<T>(known * sums[4] / static_cast<double>(classes));
  }
};

class SegAccuracyLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::metric, .labels = LabelKind::classes};

 private:
  const SegAccuracyParameter& p() const { return params<SegAccuracyParameter>(); }
  Arity bottoms() const override { return {2, 2}; }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override { return {.reads = {false, false}}; }

  void setup(Context&, const std::vector<Shape>&) override {
    require(p().reset(),
            "seg_accuracy_param.reset: false would add up batches; a test's mean over "
            "its iterations is what is supported");
    require(p().ignore_label_size() <= kMaxIgnored, "seg_accuracy_param has ",
            p().ignore_label_size(), " ignore_label, but at most ", kMaxIgnored, " are supported");
    ignored_.count = p().ignore_label_size();
    std::copy(p().ignore_label().begin(), p().ignore_label().end(), ignored_.labels);
  }

  static int64_t classes(const Shape& scores) { return std::max<int64_t>(scores[1], 2); }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& scores = bottoms[0];
    require(scores.axes() > 1 && bottoms[1].count() == scores[0] * scores.count(2),
            "there must be one label for each position, but the scores are ", scores.brief(),
            " and the labels ", bottoms[1].brief(), advice_on_labels(scores, 1, bottoms[1]));
    return {{{1, 1, 1, 3}}, {{{LabelNote::kCount}, DType::i32, true}}};
  }

  Prepared prepare(Context&, const Preparation& preparation) const override {
    Prepared prepared;  // workspace: the counts
    prepared.workspace =
        static_cast<size_t>(3 * classes(preparation.bottoms[0]) + 1) * sizeof(int32_t);
    return prepared;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &scores = pass.bottom[0], &labels = pass.bottom[1];
    const Shape& shape = scores.shape();
    const int64_t classes = this->classes(shape), inner = shape.count(2),
                  positions = labels.count();
    const LabelNote note{pass.saved[0].data<int32_t>(), classes, inner, pass.pass, pass.live_pass};
    on(scores, [&]<typename T>() {
      if (labels.device() == Device::cpu) {
        for (int64_t i = 0; i < positions; ++i) {
          const T label = labels.data<T>()[i];
          if (!is_class(label, classes) && !ignored_.has(label))
            fail_for_label(i, label, classes, inner);
        }
      }
      auto* counts = static_cast<int32_t*>(pass.workspace.raw());
      const Confusion<T> confusion{
          scores.data<T>(), labels.data<T>(), shape[1], classes, inner, ignored_, note};
      if (context.device() == Device::cpu && inner > 1) {
        count_positions(confusion, shape[0], 3 * classes + 1, counts);
      } else {
        parallel_counts(context, positions, 3 * classes + 1, confusion, counts);
      }
      parallel_totals<double, 5>(context, 1, classes, ClassShares{counts, classes},
                                 Shares<T>{counts + 3 * classes, classes, pass.top[0].data<T>()});
    });
  }

  void check(Context& context, const Forward& pass) const override {
    check_label_note(context, pass.saved[0]);
  }

  IgnoredLabels ignored_;
};

}  // namespace
REGISTER_LAYER(SegAccuracy, SegAccuracyLayer);
}  // namespace crema
