// BatchNorm+ReLU+Pooling, BatchNorm+Scale+ReLU+Pooling and BN+ReLU+Pooling: fuse the first stage of
// a residual network. The planner makes them where kernels/norm/batch_norm_pool.h implements them.
// Elsewhere, as in tests, the members run one after the other.
//   y = max over each window of relu(norm(x) * scale + bias)    norm: see BatchNorm
// Shapes: x (N, C, H, W), y (N, C, H', W') as Pooling's.
// Parameters: the first member's.
// Gradient: dy goes to the maximum's position if the maximum was positive, and from there through
// BatchNorm.
#include "kernels/core/kernel_registry.h"
#include "kernels/norm/batch_norm_pool.h"
#include "layers/fused/fused_layer.h"
#include "layers/norm/batch_norm_base.h"
#include "layers/vision/pooling_window.h"
#include "proto/layer.pb.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

class BatchNormPoolLayer : public FusedLayer {
  LayerTraits traits() const override {
    return {.order_rule = OrderRule::any_in_32_bits,
            .half_rule = HalfRule::follows,
            .reads = {true, false},
            .batch_statistics = norm().traits().batch_statistics};
  }
  Edge bottom_edge(int bottom) const override { return norm().bottom_edge(bottom); }

  const BatchNormBase& norm() const { return static_cast<const BatchNormBase&>(member(0)); }

  void setup(Context& context, const std::vector<Shape>& bottoms) override {
    require(params<ReLUParameter>().negative_slope() == 0,
            "a ReLU in front of a pooling has no slope here");
    set_up_members(context, bottoms,
                   {{type().substr(0, type().rfind("+Pooling")), {{.bottom = 0}}},
                    {"Pooling", {{.member = 0}}}});
  }

  // None where the members must run one after the other.
  std::optional<BatchNormPoolCase> case_of(const Context& context, const Shape& x,
                                           const Format& format, DType storage) const {
    const std::optional<PoolWindow> window = pool_window(member(1), x);
    if (!window || !norm().of_own_batch() || message().top_size() > 1) return std::nullopt;
    const BatchNormPoolCase c{norm().case_of(x, format), *window};
    return batch_norm_pool_supports(context, c, storage) ? std::optional(c) : std::nullopt;
  }

  bool is_profitable(const Context& context, const std::vector<Shape>& bottoms,
                     Precision precision) const override {
    // Exact float32 uses row-major order.
    return allows_fusion(context) && precision != Precision::fp32 &&
           case_of(context, bottoms[0], Format::channels_last(), storage_of(precision, DType::f32));
  }

  struct PoolState : State {
    BatchNormPoolCase kernels;
  };

  std::optional<Prepared> prepare_kernels(Context& context,
                                          const Preparation& preparation) const override {
    const std::optional<BatchNormPoolCase> c =
        case_of(context, preparation.bottoms[0], {preparation.bottom_orders[0], nullptr},
                preparation.storage);
    if (!c) return std::nullopt;
    Prepared prepared;
    prepared.make_state<PoolState>().kernels = *c;
    prepared.workspace = batch_norm_pool_workspace(c->norm);
    prepared.top_edge.gradient_parts = 2;
    if (preparation.backward) prepared.saved = {{preparation.tops[0], preparation.storage}};
    return prepared;
  }

  // saved: the BatchNorm's mean and inverse, the pooling's index, and the kernels' data.
  static BatchNormPoolSaved unpack(const std::vector<Tensor>& saved) {
    const Tensor kept = saved.size() > 3 ? saved[3] : Tensor();
    return {{saved[0], saved[1], Tensor()}, saved[2], kept};
  }

  void forward_kernels(Context& context, const Forward& pass) const override {
    batch_norm_pool_forward(
        context, state_of<PoolState>(pass).kernels, norm().blobs(pass.parameters), pass.bottom[0],
        pass.bottom_edge(0).statistics, pass.top[0], unpack(pass.saved), pass.workspace);
  }

  void backward_kernels(Context& context, const Backward& pass) const override {
    BatchNormGradients gradients;
    gradients.dx = pass.bottom_diff[0];
    norm().parameter_gradients(pass, false, gradients);
    const std::vector<Tensor>& more = pass.top_edge.gradient_parts;
    batch_norm_pool_backward(context, state_of<PoolState>(pass).kernels,
                             norm().blobs(pass.parameters), pass.bottom[0], pass.top_diff[0],
                             more.empty() ? Tensor() : more[0], unpack(pass.saved), gradients,
                             pass.workspace);
  }
};

REGISTER_FUSED(BatchNormPoolLayer, "BatchNorm+ReLU+Pooling", "BatchNorm+Scale+ReLU+Pooling",
               "BN+ReLU+Pooling");

}  // namespace
}  // namespace crema
