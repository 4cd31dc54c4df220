// CtcLoss, WarpCTCLoss (forks): the cost of label sequences without a known alignment to the steps
// (connectionist temporal classification).
//   loss = 1 / N * sum over n of -log p(labels[n] | softmax(x[:,n]))
//   p sums over all paths of one class per step that give the labels once repeats are merged and
//   blanks dropped
// Shapes: scores x (T, N, C), without softmax; the loss is a scalar. The other bottoms are
//   labels (N, L), padded with blanks: every sequence has time_step steps, or all;
//   WarpCTCLoss also: indicators (T, N), 0 at the step after a sequence, and labels (L, N), padded
//   with -1, counted from 1 if the blank is 0; or the numbers of steps (N) and of labels (N), and
//   labels (L, N).
// Parameters: none. blank_label or blank_index is the blank, by default 0.
// Gradient: that of the sum of the costs, softmax(x) - fraction of the paths, not divided by N:
// this keeps these forks' learning rates valid. loss_param { normalization } divides both alike.
// Labels that do not fit into the steps cost nothing.
#include "kernels/labels/labels.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/reduce.h"
#include "kernels/sequence/ctc.h"
#include "layers/layer.h"
#include "layers/loss/loss_normalizer.h"
#include "proto/layer.pb.h"
#include "proto/params/recurrent.pb.h"

namespace crema {
namespace {

// The source of labels and sequence lengths.
template <typename T>
struct Source {
  const T* labels;
  int64_t of_sequence, of_label;          // strides of the labels
  const T *indicators, *steps, *lengths;  // null: not given
  int64_t blank;

  CREMA_HD bool ends_at(T label) const { return indicators && label < 0; }
  // Labels of a source with indicators do not count the blank 0.
  CREMA_HD T label_at(int64_t n, int64_t j) const {
    const T label = labels[n * of_sequence + j * of_label];
    return indicators && blank == 0 && label >= 0 ? label + 1 : label;
  }
};

// Collects the labels of a sequence and counts them and the steps.
template <typename T>
struct Gather {
  Source<T> source;
  CtcCase c;
  int64_t max_steps;
  LabelNote note;
  int32_t *labels, *lengths;

  CREMA_HD int64_t steps_of(int64_t n) const {
    if (source.steps) return static_cast<int64_t>(source.steps[n]);
    int64_t t = 1;
    while (source.indicators && t < c.steps && source.indicators[t * c.sequences + n] >= T(0.5))
      ++t;
    return source.indicators ? t : max_steps;
  }

  CREMA_HD void operator()(int64_t n) const {
    const int64_t given = source.lengths ? static_cast<int64_t>(source.lengths[n]) : c.labels;
    int32_t* out = labels + n * c.labels;
    int64_t count = 0;
    bool wrong = given < 0 || given > c.labels, ended = wrong;
    for (int64_t j = 0; j < c.labels; ++j) out[j] = -1;
    for (int64_t j = 0; j < given && !ended; ++j) {
      const T label = source.label_at(n, j);
      ended = source.ends_at(label);
      if (ended || label == static_cast<T>(c.blank)) continue;
      if (!is_class(label, c.classes)) {
        note.write(n * c.labels + j, label);
        wrong = true;
      } else {
        out[count++] = static_cast<int32_t>(label);
      }
    }
    int64_t steps = steps_of(n);
    if (source.indicators && count == 0) steps = 0;
    wrong = wrong || steps < 0 || steps > c.steps;
    lengths[n] = wrong ? 1 : static_cast<int32_t>(steps);
    lengths[c.sequences + n] = wrong ? -1 : static_cast<int32_t>(count);
  }
};

template <typename T>
struct CostOf {
  const T* costs;
  template <typename>
  CREMA_HD T operator()(int64_t, int64_t, int64_t n) const {
    return costs[n];
  }
};

class CtcLossLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::loss};

 private:
  bool independent_along(int bottom, int axis, const std::vector<Shape>&) const override {
    return bottom > 0 || axis == 1;
  }

 public:
  explicit CtcLossLayer(bool warp = false) : warp_(warp) {}

 private:
  const CtcLossParameter& p() const { return params<CtcLossParameter>(); }
  Arity bottoms() const override { return {2, warp_ ? 4 : 2}; }
  bool is_loss() const override { return true; }
  LayerTraits traits() const override { return {.reads = {false, false}}; }
  bool differentiable(int bottom) const override { return bottom == 0; }

  CtcCase case_of(const std::vector<Shape>& bottoms) const {
    const Shape &x = bottoms[0], &labels = bottoms.back();
    CtcCase c{x[0], x[1], x.count(2), bottoms.size() == 2 ? labels.count(1) : labels[0], 0};
    c.blank = p().has_blank_index() ? p().blank_index() : p().blank_label();
    if (c.blank < 0) c.blank += c.classes;
    return c;
  }

  // After the note the members of CtcTargets and of CtcSaved.
  enum Saved { kNote, kLabels, kLengths, kProbabilities, kAlpha, kCosts };

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &x = bottoms[0], &labels = bottoms.back();
    require(x.axes() >= 3, "the scores must have the axes steps, sequences and classes, but their ",
            "shape is ", x.brief());
    const bool columns = bottoms.size() > 2;  // labels are stored (L, N)
    require(labels.axes() >= (columns ? 2 : 1) && labels[columns ? 1 : 0] == x[1],
            "the labels must have the shape ",
            columns ? "labels x sequences" : "sequences x labels", " with ", x[1],
            " sequences as the scores (", x.brief(), "), but it is ", labels.brief());
    const CtcCase c = case_of(bottoms);
    require(c.blank >= 0 && c.blank < c.classes, "the blank is label ", c.blank, ", but there are ",
            c.classes, " scores at each step: it must be below that");
    require(p().alphabet_size() == 0 || p().alphabet_size() == c.classes, "alphabet_size is ",
            p().alphabet_size(), ", but there are ", c.classes,
            " scores at each step: both count all labels and the blank");
    require(p().time_step() <= c.steps, "time_step is ", p().time_step(),
            ", but the scores have only ", c.steps, " steps");
    for (size_t i = 1; i + 1 < bottoms.size(); ++i) {
      const int64_t count = bottoms.size() == 3 ? c.steps * c.sequences : c.sequences;
      require(bottoms[i].count() == count, "bottom ", i + 1, " must have ", count, " values, ",
              bottoms.size() == 3 ? "one for each step of each sequence" : "a length each sequence",
              ", but its shape is ", bottoms[i].brief());
    }
    return {{Shape()},
            {{{LabelNote::kCount}, DType::i32, true},
             {{c.sequences, c.labels}, DType::i32, false},
             {{2, c.sequences}, DType::i32, false},
             {{c.steps, c.sequences, c.classes}, {}, false},
             {{c.steps, c.sequences, c.states()}, {}, false},
             {{c.sequences}, {}, false}}};
  }

  struct State : LayerState {
    CtcCase c;
  };

  Prepared prepare(Context&, const Preparation& preparation) const override {
    Prepared prepared;
    CtcCase& c = prepared.make_state<State>().c;
    c = case_of(preparation.bottoms);
    if (preparation.backward) prepared.workspace = ctc_workspace(c, preparation.dtype);
    return prepared;
  }

  static CtcTargets targets(const std::vector<Tensor>& saved) {
    return {saved[kLabels], saved[kLengths]};
  }
  static CtcSaved of_ctc(const std::vector<Tensor>& saved) {
    return {saved[kProbabilities], saved[kAlpha], saved[kCosts]};
  }

  bool normalized() const {
    const LossParameter& p = message().loss_param();
    return p.has_normalization() || p.has_normalize();
  }
  LossNormalizer normalizer(const CtcCase& c) const {
    return loss_normalizer(message().loss_param(), LossParameter::BATCH_SIZE, c.sequences,
                           c.sequences * c.steps);
  }
  double divisor(const CtcCase& c) const { return normalizer(c).constant; }
  LossParts loss_parts(const std::vector<Shape>& bottoms) const override {
    LossNormalizer divided = normalizer(case_of(bottoms));
    divided.by_valid = false;  // all sequences count
    LossParts parts = divided.parts();
    if (!normalized()) parts.gradient = PartsRule::sum;
    return parts;
  }

  template <typename T>
  static Source<T> source(const CtcCase& c, const std::vector<Tensor>& bottom) {
    const T* labels = bottom.back().data<T>();
    if (bottom.size() == 2) return {labels, c.labels, 1, nullptr, nullptr, nullptr, c.blank};
    const int64_t below = bottom.back().count() / std::max<int64_t>(1, c.labels);
    if (bottom.size() == 3)
      return {labels, 1, below, bottom[1].data<T>(), nullptr, nullptr, c.blank};
    return {labels, 1, below, nullptr, bottom[1].data<T>(), bottom[2].data<T>(), c.blank};
  }

  void forward(Context& context, const Forward& pass) const override {
    const CtcCase& c = state_of<State>(pass).c;
    on(pass.bottom[0], [&]<typename T>() {
      const LabelNote note{pass.saved[kNote].data<int32_t>(), c.classes,
                           std::max<int64_t>(1, c.labels), pass.pass, pass.live_pass};
      const int64_t steps = p().time_step() > 0 ? p().time_step() : c.steps;
      const CtcTargets target = targets(pass.saved);
      const Source<T> from = source<T>(c, pass.bottom);
      parallel_for(context, c.sequences,
                   Gather<T>{from, c, steps, note, target.labels.data<int32_t>(),
                             target.lengths.data<int32_t>()},
                   64);
      check_targets(c, target, from);
      const CtcSaved saved = of_ctc(pass.saved);
      ctc_forward(context, c, pass.bottom[0], target, saved);
      parallel_sum<T>(context, {1, 1, c.sequences}, CostOf<T>{saved.costs.data<T>()},
                      {pass.top[0].data<T>(), static_cast<T>(1 / divisor(c))});
    });
  }

  // On the CPU a wrong label or length throws Error immediately.
  template <typename T>
  static void check_targets(const CtcCase& c, const CtcTargets& target, const Source<T>& from) {
    if (target.lengths.device() != Device::cpu) return;
    for (int64_t n = 0; n < c.sequences; ++n) {
      if (target.lengths.data<int32_t>()[c.sequences + n] >= 0) continue;
      for (int64_t j = 0; j < c.labels; ++j) {
        const T label = from.label_at(n, j);
        if (!is_class(label, c.classes) && (label >= 0 || !from.indicators))
          fail("label ", label, " of sequence ", n, " of the batch is not a class: there are ",
               c.classes, " scores at each step, so labels are the integers from 0 to ",
               c.classes - 1, ". Correct the data, or num_output of the layer that gives the ",
               "scores");
      }
      fail("sequence ", n, " of the batch has no length from 0 to ", c.steps, " steps and ",
           c.labels, " labels: correct the data");
    }
  }

  void backward(Context& context, const Backward& pass) const override {
    if (!pass.bottom_diff[0]) return;
    const CtcCase& c = state_of<State>(pass).c;
    ctc_backward(context, c, targets(pass.saved), of_ctc(pass.saved), pass.top_diff[0],
                 normalized() ? 1 / divisor(c) : 1, pass.bottom_diff[0], pass.workspace);
  }

  void check(Context& context, const Forward& pass) const override {
    check_label_note(context, pass.saved[kNote]);
  }

  const bool warp_;  // WarpCTCLoss, which may have lengths as bottoms
};

}  // namespace
REGISTER_LAYER(CtcLoss, CtcLossLayer);
REGISTER_LAYER(WarpCTCLoss, CtcLossLayer, true);
}  // namespace crema
