// BatchNorm+Scale+GELU: a normalization and the activation after it, on a GPU with kernels for
// packs of channels (kernels/norm/batch_norm.h). Otherwise, as in tests, the members run one after
// the other.
//   y = gelu(norm(x) * scale + bias)    norm: see BatchNorm; gelu: the exact one of GELU
// Shapes: y as x (N, C, H, W).
// Parameters: BatchNorm's, then Scale's.
// Gradient: through GELU at the value recomputed from x, then as BatchNorm's.
#include "kernels/core/kernel_registry.h"
#include "layers/fused/fused_layer.h"
#include "layers/norm/batch_norm_base.h"
#include "proto/layer.pb.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

class BatchNormGeluLayer : public FusedLayer {
  LayerTraits traits() const override {
    return {.order_rule = OrderRule::any_in_32_bits,
            .half_rule = HalfRule::follows,
            .reads = {true, false},
            .batch_statistics = norm().traits().batch_statistics};
  }
  Edge bottom_edge(int bottom) const override { return norm().bottom_edge(bottom); }

  const BatchNormBase& norm() const { return static_cast<const BatchNormBase&>(member(0)); }

  void setup(Context& context, const std::vector<Shape>& bottoms) override {
    set_up_members(context, bottoms,
                   {{"BatchNorm+Scale", {{.bottom = 0}}}, {"GELU", {{.member = 0}}}});
  }

  BatchNormCase case_of(const Shape& x, const Format& format) const {
    BatchNormCase c = norm().case_of(x, format);
    c.gelu = true;
    return c;
  }
  bool supports(const Context& context, const Shape& x, const Format& format, DType storage) const {
    return !params<GELUParameter>().approximate() && norm().of_own_batch() && x.count() > 0 &&
           batch_norm_takes_packs(context, case_of(x, format), storage);
  }

  bool is_profitable(const Context& context, const std::vector<Shape>& bottoms,
                     Precision precision) const override {
    // Exact float32 uses row-major order.
    return allows_fusion(context) && precision != Precision::fp32 &&
           supports(context, bottoms[0], Format::channels_last(),
                    storage_of(precision, DType::f32));
  }

  std::optional<Prepared> prepare_kernels(Context& context,
                                          const Preparation& preparation) const override {
    const Shape& x = preparation.bottoms[0];
    const Format format{preparation.bottom_orders[0], nullptr};
    if (!supports(context, x, format, preparation.storage)) return std::nullopt;
    Prepared prepared;
    prepared.workspace = batch_norm_workspace(context, case_of(x, format).view);
    return prepared;
  }

  static BatchNormSaved unpack(const std::vector<Tensor>& saved) {
    return {saved[0], saved[1], Tensor()};
  }

  void forward_kernels(Context& context, const Forward& pass) const override {
    const Tensor& x = pass.bottom[0];
    batch_norm_forward(context, case_of(x.shape(), x.format()), norm().blobs(pass.parameters), x,
                       Tensor(), pass.bottom_edge(0).statistics, pass.top[0], unpack(pass.saved),
                       pass.workspace);
  }

  void backward_kernels(Context& context, const Backward& pass) const override {
    BatchNormGradients gradients;
    gradients.dx = pass.bottom_diff[0];
    norm().parameter_gradients(pass, false, gradients);
    const Tensor& dy = pass.top_diff[0];
    batch_norm_backward(context, case_of(dy.shape(), dy.format()), norm().blobs(pass.parameters),
                        pass.bottom[0], Tensor(), dy, Tensor(), unpack(pass.saved), gradients,
                        pass.workspace);
  }
};

REGISTER_FUSED(BatchNormGeluLayer, "BatchNorm+Scale+GELU");

}  // namespace
}  // namespace crema
