// BatchReindex: selects images of a batch by index, in any order and with repetition.
//   y[j] = x[index[j]]
// Gather does so along any axis (`axis`, default 0); with one bottom, or as many tops as bottoms,
// the tops are the bottoms: in a fork that form gathers the batches of all processes, and here one
// process has them all.
// Shapes: x any, index (M) of integers; y as x but M long along the axis.
// Parameters: none.
// Gradient: dx[i] = sum of the dy[j] with index[j] = i; none for the index.
#include "kernels/move/gather.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"
#include "tensor/part.h"

namespace crema {
namespace {

class BatchReindexLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::shape, .keeps_channels = true, .copies = true};

 protected:
  virtual int axis(const Shape&) const { return 0; }

  Arity bottoms() const override { return {2, 2}; }
  bool differentiable(int bottom) const override { return bottom == 0; }
  LayerTraits traits() const override {
    return {.half_rule = HalfRule::follows, .reads = {true, false}};
  }

  // The index names positions of the whole axis.
  bool independent_along(int bottom, int axis, const std::vector<Shape>& bottoms) const override {
    return bottom == 0 && axis != this->axis(bottoms[0]);
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &x = bottoms[0], &index = bottoms[1];
    require(x.axes() > 0 && index.axes() == 1,
            "the second bottom must be a list of numbers (one axis), but is ", index.brief(),
            ", and the first one needs an axis to pick from, but is ", x.brief());
    Shape y = x;
    y[axis(x)] = index[0];
    return {{y}, {}};
  }

  Prepared prepare(Context&, const Preparation& preparation) const override {
    Prepared prepared;
    if (preparation.backward) {
      prepared.workspace =
          extent(preparation.bottoms[0], preparation.bottoms[1]).scratch() * sizeof(int32_t);
    }
    return prepared;
  }

  GatherExtent extent(const Shape& x, const Shape& index) const {
    const int at = axis(x);
    return {x.count(0, at), x[at], index.count(), x.count(at + 1)};
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &x = pass.bottom[0], &index = pass.bottom[1];
    gather(context, extent(x.shape(), index.shape()), x, index, pass.top[0]);
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor &dx = pass.bottom_diff[0], &index = pass.bottom[1];
    const GatherExtent e = extent(dx.shape(), index.shape());
    gather_gradient(context, e, index, pass.top_diff[0],
                    part_of(pass.workspace, 0, {e.scratch()}, DType::i32), dx);
  }
};

class GatherLayer : public BatchReindexLayer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::shape, .copies = true};

 private:
  bool picks() const { return message().bottom_size() == 2 && message().top_size() == 1; }
  Arity bottoms() const override { return {1, -1}; }
  Arity tops() const override { return {1, -1}; }
  LayerTraits traits() const override {
    LayerTraits traits = BatchReindexLayer::traits();
    traits.is_view = message().bottom_size() == 1;
    traits.half_rule = copies() ? HalfRule::never : HalfRule::follows;
    return traits;
  }
  bool differentiable(int bottom) const override { return bottom == 0 || !picks(); }
  bool copies() const { return !picks() && message().bottom_size() != 1; }
  int axis(const Shape& x) const override {
    return x.canonical_axis(params<GatherParameter>().axis());
  }
  Inference infer(const std::vector<Shape>& bottoms) const override {
    require(picks() || message().top_size() == message().bottom_size(), "there are ",
            message().bottom_size(), " bottoms, but ", message().top_size(),
            " tops: give one for each, or a bottom and a list of numbers for one top");
    if (!picks()) return {bottoms, {}};
    return BatchReindexLayer::infer(bottoms);
  }
  Prepared prepare(Context& context, const Preparation& preparation) const override {
    return picks() ? BatchReindexLayer::prepare(context, preparation) : Prepared{};
  }
  void forward(Context& context, const Forward& pass) const override {
    if (picks()) return BatchReindexLayer::forward(context, pass);
    for (size_t i = 0; copies() && i < pass.top.size(); ++i)
      copy(context, pass.bottom[i], pass.top[i]);
  }
  void backward(Context& context, const Backward& pass) const override {
    if (picks()) return BatchReindexLayer::backward(context, pass);
    for (size_t i = 0; copies() && i < pass.bottom_diff.size(); ++i) {
      if (!pass.bottom_diff[i]) continue;
      if (pass.top_diff[i]) {
        copy(context, pass.top_diff[i], pass.bottom_diff[i]);
      } else {
        zero(context, pass.bottom_diff[i]);
      }
    }
  }
};

}  // namespace
REGISTER_LAYER(BatchReindex, BatchReindexLayer);
REGISTER_LAYER(Gather, GatherLayer);
}  // namespace crema
