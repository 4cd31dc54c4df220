// BatchNorm+Scale+BatchNorm+Scale+Sum+ReLU: fuses the end of a residual block whose two branches
// both end in BatchNorm and Scale. The planner creates it if one kernel
// (kernels/norm/batch_norm_pair.h) implements it. Otherwise, as in tests, its members run one after
// the other.
//   y = relu(norm(x) * scale + bias + norm(z) * scale' + bias')    norm: see BatchNorm
// Shapes: x and z (N, C, ...), y the same.
// Parameters: those of BatchNorm and Scale for x, then those for z; the settings in the message
// apply to both.
// Gradient: that of y through the ReLU, then through each BatchNorm.
#include <algorithm>

#include "kernels/core/kernel_registry.h"
#include "kernels/norm/batch_norm_pair.h"
#include "layers/fused/fused_layer.h"
#include "layers/norm/batch_norm_base.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class BatchNormPairLayer : public FusedLayer {
  Arity bottoms() const override { return {2, 2}; }
  LayerTraits traits() const override {
    return {.in_place = true,
            .order_rule = OrderRule::any_in_32_bits,
            .half_rule = HalfRule::follows,
            .reads = {true, true},
            .batch_statistics = norm(0).traits().batch_statistics,
            .recomputes = true};
  }
  Edge bottom_edge(int) const override { return norm(0).bottom_edge(0); }

  // The member that normalizes bottom `side`.
  const BatchNormBase& norm(size_t side) const {
    return static_cast<const BatchNormBase&>(member(side));
  }

  void setup(Context& context, const std::vector<Shape>& bottoms) override {
    set_up_members(context, bottoms,
                   {{"BatchNorm+Scale+Sum+ReLU", {{.bottom = 0}, {.member = 1}}},
                    {"BatchNorm+Scale", {{.bottom = 1}}}});
  }

  bool is_profitable(const Context& context, const std::vector<Shape>& bottoms,
                     Precision precision) const override {
    const Shape& x = bottoms[0];
    const auto bytes = static_cast<int64_t>(size_of(storage_of(precision, DType::f32)));
    // Exact float32 uses row-major order.
    return allows_fusion(context) && precision != Precision::fp32 && x.axes() > 2 &&
           x == bottoms[1] && x[1] * bytes % 16 == 0 && norm(0).of_own_batch();
  }

  struct PairState : State {
    BatchNormCase norm;
  };
  template <typename Pass>
  static const BatchNormCase& case_of(const Pass& pass) {
    return state_of<PairState>(pass).norm;
  }

  std::optional<Prepared> prepare_kernels(Context& context,
                                          const Preparation& preparation) const override {
    if (!norm(0).of_own_batch()) return std::nullopt;
    const Format format{preparation.bottom_orders[0], nullptr};
    const BatchNormCase c = norm(0).case_of(preparation.bottoms[0], format);
    if (!batch_norm_takes_packs(context, c, preparation.storage)) return std::nullopt;
    Prepared prepared;
    prepared.make_state<PairState>().norm = c;
    const Shape& x = preparation.bottoms[0];
    prepared.workspace = std::max(batch_norm_pair_workspace(c),
                                  batch_norm_workspace(context, ChannelView::of(x, format)));
    prepared.top_edge.gradient_parts = 2;
    if (!preparation.backward) return prepared;
    // The signs of y.
    const auto bytes = static_cast<int64_t>(size_of(preparation.storage));
    prepared.saved = {{Shape{preparation.bottoms[0].count() * bytes / 16}, DType::u8}};
    prepared.reads = {true, false, false};
    return prepared;
  }

  // saved: mean and inverse of x and of z, then signs of y.
  BatchNormSide side(size_t side, const std::vector<Tensor>& parameters, const Tensor& bottom,
                     const Tensor& statistics, const std::vector<Tensor>& saved) const {
    const Tensor signs = side == 0 && saved.size() > 4 ? saved[4] : Tensor();
    return {norm(side).blobs(parameters_of(side, parameters)),
            bottom,
            statistics,
            {saved[2 * side], saved[2 * side + 1], signs}};
  }

  void forward_kernels(Context& context, const Forward& pass) const override {
    const auto of = [&](size_t i) {
      return side(i, pass.parameters, pass.bottom[i], pass.bottom_edge(i).statistics, pass.saved);
    };
    batch_norm_pair_forward(context, case_of(pass), of(0), of(1), pass.top[0], pass.workspace);
  }

  void recompute_kernels(Context& context, const Forward& pass) const override {
    const auto of = [&](size_t i) {
      return side(i, pass.parameters, pass.bottom[i], Tensor(), pass.saved);
    };
    batch_norm_pair_recompute(context, case_of(pass), of(0), of(1), pass.top[0], pass.workspace);
  }

  void backward_kernels(Context& context, const Backward& pass) const override {
    BatchNormGradients gradients[2];
    for (size_t i = 0; i < 2; ++i) {
      Backward part;
      part.parameter_diff = parameters_of(i, pass.parameter_diff);
      part.accumulate = parameters_of(i, pass.accumulate);
      gradients[i].dx = pass.bottom_diff[i];
      norm(i).parameter_gradients(part, false, gradients[i]);
    }
    const auto of = [&](size_t i) {
      return side(i, pass.parameters, pass.bottom[i], Tensor(), pass.saved);
    };
    const std::vector<Tensor>& more = pass.top_edge.gradient_parts;
    batch_norm_pair_backward(context, case_of(pass), of(0), of(1), pass.top_diff[0],
                             more.empty() ? Tensor() : more[0], gradients[0], gradients[1],
                             pass.workspace);
  }
};

REGISTER_FUSED(BatchNormPairLayer, "BatchNorm+Scale+BatchNorm+Scale+Sum+ReLU");

}  // namespace
}  // namespace crema
