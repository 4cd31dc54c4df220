// CTCGreedyDecoder (forks): decodes labels from scores: the best class of each step, repeats merged
// (unless ctc_merge_repeated is false), blanks dropped.
// Shapes: scores x (T, N, C). Without more bottoms y (N, T, 1, 1) has the decoded labels, padded
// with -1. With indicators (T, N) a sequence ends where the next step has 0. With labels (N, L)
// instead, which a negative value ends, y (1, 2, 1, 1) is the accuracy:
//   y[0] = 1 - 1 / N * sum over n of edits[n] / (the longer of both)    edits: Levenshtein distance
//   y[1] = 1 / N * number of n without edits
// Parameters: none. blank_index is the blank; by default the last class if there are indicators,
// else 0.
// Gradient: none.
#include "kernels/reduce/reduce.h"
#include "kernels/sequence/best_path.h"
#include "layers/layer.h"
#include "proto/params/recurrent.pb.h"

namespace crema {
namespace {

template <typename T>
struct ReadLabels {
  BestPath path;
  const T* indicators;  // null: all steps count
  int32_t* scratch;     // per sequence: steps
  T* y;
  CREMA_HD void operator()(int64_t n) const {
    int64_t until = 1;
    while (until < path.steps && (!indicators || indicators[until * path.sequences + n] != 0))
      ++until;
    int32_t* labels = scratch + n * path.steps;
    const int32_t count = path.read(n, until, labels);
    for (int64_t t = 0; t < path.steps; ++t)
      y[n * path.steps + t] = t < count ? static_cast<T>(labels[t]) : T(-1);
  }
};

template <typename T>
struct CountEdits {
  BestPath path;
  WantedLabels<T> labels;
  int32_t* scratch;  // per sequence: 2 * steps + maximum
  T* wrong;          // (2, sequences): edits over length; whether any
  CREMA_HD void operator()(int64_t n) const {
    int32_t* read = scratch + n * (2 * path.steps + labels.maximum);
    int32_t *left = read + path.steps, *wanted = left + path.steps;
    const int32_t count = path.read(n, path.steps, read), length = labels.read(n, wanted);
    const int32_t edits = distance(read, count, wanted, length, left);
    const int32_t longer = count > length ? count : length;
    wrong[n] = longer > 0 ? static_cast<T>(edits) / static_cast<T>(longer) : T(0);
    // Caffe's forks count a sequence without labels as wrong.
    wrong[path.sequences + n] = T(longer == 0 || edits > 0);
  }

  // Edit distance by dynamic programming: kColumns columns of wanted labels at a time are kept in
  // registers; left[i] is the column before them.
  CREMA_HD static int32_t distance(const int32_t* read, int32_t count, const int32_t* wanted,
                                   int32_t length, int32_t* left) {
    constexpr int kColumns = 8;
    for (int32_t i = 0; i < count; ++i) left[i] = i + 1;
    int32_t result = count;  // in the column of the empty label sequence
    for (int32_t first = 0; first < length; first += kColumns) {
      int32_t column[kColumns], above[kColumns];
      for (int j = 0; j < kColumns; ++j) {
        column[j] = first + j < length ? wanted[first + j] : -1;
        above[j] = first + j + 1;
      }
      int32_t corner = first;  // upper left neighbour of the row
      for (int32_t i = 0; i < count; ++i) {
        const int32_t label = read[i];
        int32_t before = left[i], diagonal = corner;
        corner = before;
        for (int j = 0; j < kColumns; ++j) {
          const int32_t replace = diagonal + (label != column[j]);
          const int32_t other = (above[j] < before ? above[j] : before) + 1;
          diagonal = above[j];
          before = replace < other ? replace : other;
          above[j] = before;
        }
        left[i] = before;
      }
      for (int j = 0; j < kColumns; ++j) result = first + j + 1 == length ? above[j] : result;
    }
    return result;
  }
};

template <typename T>
struct RightShare {
  const T* wrong;
  int64_t sequences;
  template <typename>
  CREMA_HD T operator()(int64_t k, int64_t, int64_t n) const {
    return 1 - wrong[k * sequences + n];
  }
};

class CtcGreedyDecoderLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::reduction};

 private:
  const CTCDecoderParameter& p() const { return params<CTCDecoderParameter>(); }
  Arity bottoms() const override { return {1, 2}; }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override { return {.reads = {false, false}}; }

  static bool has_indicators(const std::vector<Shape>& bottoms) {
    const Shape& x = bottoms[0];
    return bottoms.size() == 2 && bottoms[1].axes() >= 2 && bottoms[1][0] == x[0] &&
           bottoms[1].count(1) == x[1];
  }
  static bool has_labels(const std::vector<Shape>& bottoms) {
    return bottoms.size() == 2 && !has_indicators(bottoms);
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    require(x.axes() >= 3, "the scores must have the axes steps, sequences and classes, but their ",
            "shape is ", x.brief());
    if (!has_labels(bottoms)) return {{{x[1], x[0], 1, 1}}, {}};
    require(bottoms[1].axes() >= 1 && bottoms[1][0] == x[1], "the second bottom must be ",
            "indicators of shape ", Shape{x[0], x[1]}.brief(), " or labels of shape ", x[1],
            "x(labels), but its shape is ", bottoms[1].brief());
    return {{{1, 2, 1, 1}}, {}};
  }

  // Workspace: with labels (2, sequences) wrong; then best classes and scratch.
  Prepared prepare(Context&, const Preparation& preparation) const override {
    const Shape& x = preparation.bottoms[0];
    const bool labels = has_labels(preparation.bottoms);
    const int64_t maximum = labels ? preparation.bottoms[1].count(1) + x[0] : 0;
    Prepared prepared;
    prepared.workspace = (labels ? 2 * static_cast<size_t>(x[1]) * size_of(preparation.dtype) : 0) +
                         static_cast<size_t>(x[1] * (2 * x[0] + maximum)) * sizeof(int32_t);
    return prepared;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &x = pass.bottom[0], &y = pass.top[0];
    std::vector<Shape> bottoms;
    for (const Tensor& bottom : pass.bottom) bottoms.push_back(bottom.shape());
    const int64_t steps = bottoms[0][0], sequences = bottoms[0][1], classes = bottoms[0].count(2);
    int64_t blank = has_indicators(bottoms) ? classes - 1 : 0;
    if (p().has_blank_index()) blank = p().blank_index() + (p().blank_index() < 0 ? classes : 0);
    const bool scored = has_labels(bottoms);
    on(x, [&]<typename T>() {
      T* wrong = pass.workspace.data<T>();
      auto* best = reinterpret_cast<int32_t*>(wrong + (scored ? 2 * sequences : 0));
      int32_t* scratch = best + steps * sequences;
      best_classes<T>(context, x, classes, best);
      const BestPath path{steps, sequences, sequences, 1, blank, p().ctc_merge_repeated(), best};
      if (!scored) {
        const T* indicators = has_indicators(bottoms) ? pass.bottom[1].data<T>() : nullptr;
        parallel_for(context, sequences, ReadLabels<T>{path, indicators, scratch, y.data<T>()}, 16);
        return;
      }
      const WantedLabels<T> wanted{pass.bottom[1].data<T>(), bottoms[1].count(1), blank, true};
      parallel_for(context, sequences, CountEdits<T>{path, wanted, scratch, wrong}, 4);
      parallel_sum<T>(context, {2, 1, sequences}, RightShare<T>{wrong, sequences},
                      {y.data<T>(), T(1) / static_cast<T>(sequences)});
    });
  }
};

}  // namespace
REGISTER_LAYER(CTCGreedyDecoder, CtcGreedyDecoderLayer);
}  // namespace crema
