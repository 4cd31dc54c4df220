// BatchReduction: sums, means or top-k means over groups of consecutive entries of any axis (for
// example the frames of a clip).
//   y[..., l, ...] = sum (or mean, or mean of the k largest) of x[..., t, ...]
//                    over the entries t of group l
// Each `level` gives a group of level * level entries, in order; a single level 1, or none, makes
// one group of all entries. reduction_param gives operation and axis.
// Shapes: y as x with one entry per group; with a single group the axis disappears. With pos, entry
// t counts only at index t of the next axis, which disappears too.
// Parameters: none.
// Gradient: dx = dy of its group, times 1 (SUM), 1 / entries (MEAN), 1 / k for the largest (TOPK).
#include "kernels/move/strided_copy.h"
#include "kernels/softmax/top_k_mean.h"
#include "layers/layer.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

using Op = ReductionParameter;

class BatchReductionLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::reduction};

 private:
  const BatchReductionParameter& p() const { return params<BatchReductionParameter>(); }
  const ReductionParameter& reduction() const { return p().reduction_param(); }
  LayerTraits traits() const override { return {.reads = {false, false}}; }
  bool one_group() const {
    return p().level_size() == 0 || (p().level_size() == 1 && p().level(0) == 1);
  }
  bool top_k() const { return reduction().operation() == Op::TOPK; }

  void setup(Context&, const std::vector<Shape>&) override {
    require(reduction().operation() != Op::ASUM && reduction().operation() != Op::SUMSQ,
            "BatchReduction takes operation SUM, MEAN or TOPK");
    require(p().level_size() <= 1 || (!p().pos() && !top_k()), "pos and TOPK go with one level, ",
            "but there are ", p().level_size());
    require(!p().pos() || !top_k(), "pos and TOPK do not go together");
    for (const int level : p().level())
      require(level > 0, "level is ", level, ", but must be at least 1");
  }

  // x as (outer, entries, position, inner); position is the next axis with pos, otherwise 1.
  struct View {
    int64_t outer, entries, positions, inner;
    std::vector<int64_t> groups;  // number of entries per group
  };

  View view(const Shape& x) const {
    const int axis = x.canonical_axis(reduction().axis());
    const int inner = axis + (p().pos() ? 2 : 1);
    require(inner <= x.axes(), "pos needs an axis after axis ", axis, ", but the bottom is ",
            x.brief());
    View v{x.count(0, axis), x[axis], p().pos() ? x[axis + 1] : 1, x.count(inner), {}};
    if (one_group()) {
      v.groups = {v.entries};
    } else {
      int64_t sum = 0;
      for (const int64_t level : p().level()) {
        v.groups.push_back(level * level);
        sum += level * level;
      }
      require(sum == v.entries, "the groups of `level` have ", sum, " entries together, but axis ",
              axis, " of the bottom, ", x.brief(), ", has ", v.entries);
    }
    require(!p().pos() || v.positions >= v.entries, "with pos the axis after axis ", axis,
            " must be at least as long, but the bottom is ", x.brief());
    require(!top_k() || (reduction().k() >= 1 && reduction().k() <= v.entries), "k is ",
            reduction().k(), ", but there are ", v.entries, " entries to choose from");
    return v;
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    const int axis = x.canonical_axis(reduction().axis());
    const View v = view(x);
    Shape y;
    for (int i = 0; i < axis; ++i) y.push_back(x[i]);
    if (!one_group()) y.push_back(static_cast<int64_t>(v.groups.size()));
    for (int i = axis + (p().pos() ? 2 : 1); i < x.axes(); ++i) y.push_back(x[i]);
    if (top_k()) return {{y}, {{x, DType::u8}}};
    return {{y}, {}};
  }

  // One per group.
  std::vector<StridedCopy> moves(const Shape& x) const {
    const View v = view(x);
    const int64_t entry = v.positions * v.inner, groups = static_cast<int64_t>(v.groups.size());
    std::vector<StridedCopy> all;
    int64_t first = 0;
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t entries = v.groups[group];
      StridedCopy moves;
      moves.axes = {{v.outer, groups * v.inner, v.entries * entry},
                    {entries, 0, p().pos() ? entry + v.inner : entry},
                    {v.inner, 1, 1}};
      moves.to_start = group * v.inner;
      moves.from_start = first * entry;
      if (reduction().operation() == Op::MEAN) moves.factor = 1.f / static_cast<float>(entries);
      all.push_back(moves);
      first += entries;
    }
    return all;
  }

  TopKMean top_k_of(const Shape& x) const {
    const View v = view(x);
    return {v.outer, v.entries, v.inner, reduction().k(), 1};
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &x = pass.bottom[0], &y = pass.top[0];
    if (top_k()) return top_k_mean(context, top_k_of(x.shape()), x, pass.saved[0], y);
    for (const StridedCopy& group : moves(x.shape())) strided_copy(context, group, x, y);
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor &dy = pass.top_diff[0], &dx = pass.bottom_diff[0];
    if (top_k()) return top_k_mean_gradient(context, top_k_of(dx.shape()), dy, pass.saved[0], dx);
    if (p().pos()) zero(context, dx);
    for (const StridedCopy& group : moves(dx.shape()))
      strided_copy(context, group.reversed(), dy, dx);
  }
};

}  // namespace
REGISTER_LAYER(BatchReduction, BatchReductionLayer);
}  // namespace crema
