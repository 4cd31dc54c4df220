// BatchNorm+ReLU+Pooling, BatchNorm+Scale+ReLU+Pooling and BN+ReLU+Pooling: what the planner makes
// of the first stage of a residual network, where kernels do all of it together
// (kernels/norm/batch_norm_pool.h). Elsewhere, as in tests, the members run one after the other.
//   y = max over each window of relu(norm(x) * scale + bias)    norm: see BatchNorm
// Shapes: x (N, C, H, W), y (N, C, H', W') as Pooling's.
// Parameters: the first member's.
// Gradient: dy goes to the place that was the largest, if that was positive, and from there through
// BatchNorm.
#include <optional>

#include "kernels/norm/batch_norm_pool.h"
#include "layers/fused/fused_member.h"
#include "layers/norm/batch_norm_base.h"
#include "layers/vision/pooling_window.h"
#include "proto/layer.pb.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

class BatchNormPoolLayer : public Layer {
  OrderRule order_rule() const override { return OrderRule::any; }
  HalfRule half_rule() const override { return HalfRule::follows; }
  BackwardReads reads() const override { return {true, false}; }
  bool takes_sums(int bottom) const override { return norm().takes_sums(bottom); }

  const BatchNormBase& norm() const { return static_cast<BatchNormBase&>(*norm_); }

  void setup(Context& context, const std::vector<Shape>& bottoms) override {
    require(params<ReLUParameter>().negative_slope() == 0,
            "a ReLU in front of a pooling has no slope here");
    const std::string first = type().substr(0, type().rfind("+Pooling"));
    norm_ = joined_member(*this, first.c_str());
    norm_->setup(context, bottoms);
    for (const ParameterSpec& spec : norm_->parameters())
      add_parameter(spec.shape, *spec.filler, spec.learned);
    pooling_ = joined_member(*this, "Pooling");
    pooling_->setup(context, bottoms);
  }

  // Saved are the first member's mean and inverse, then the pooling's index.
  Inference infer(const std::vector<Shape>& bottoms) const override {
    Inference all = norm_->infer(bottoms), pooled = pooling_->infer(bottoms);
    all.tops = pooled.tops;
    all.saved.insert(all.saved.end(), pooled.saved.begin(), pooled.saved.end());
    return all;
  }

  std::unique_ptr<BatchNormPool> kernels(const Context& context, const Shape& x,
                                         const Format& format, DType storage) const {
    const std::optional<PoolWindow> window = pool_window(*pooling_, x);
    if (!window || norm().takes_parts() || message().top_size() > 1) return nullptr;
    return make_batch_norm_pool(context, norm().case_of(x, format), *window, storage);
  }

  bool worth_joining(const Context& context, const std::vector<Shape>& bottoms,
                     Precision precision) const override {
    // Exact float32 is in plain order.
    return context.device() == Device::gpu && context.implementation.empty() &&
           precision != Precision::fp32 &&
           kernels(context, bottoms[0], Format::channels_last(),
                   storage_of(precision, DType::f32)) != nullptr;
  }

  Prepared prepare(Context& context, const Preparation& preparation) override {
    kernels_ = kernels(context, preparation.bottoms[0], {preparation.bottom_orders[0], nullptr},
                       preparation.storage);
    if (kernels_) {
      Prepared prepared;
      prepared.workspace = kernels_->workspace();
      prepared.top_diff_parts = 2;
      if (preparation.backward) prepared.saved = {{preparation.tops[0], preparation.storage}};
      return prepared;
    }
    Prepared prepared = norm_->prepare(context, preparation);
    pooling_->prepare(context, preparation);
    prepared.top_diff_parts = 1;
    prepared.saved.push_back({preparation.bottoms[0], preparation.storage});
    return prepared;
  }

  static BatchNormPoolSaved kernels_saved(const std::vector<Tensor>& tensors) {
    const Tensor kept = tensors.size() > 3 ? tensors[3] : Tensor();
    return {{tensors[0], tensors[1], Tensor()}, tensors[2], kept};
  }
  // What the first member makes, without kernels.
  static Tensor between(const std::vector<Tensor>& saved, const Tensor& like) {
    return saved.back().reshaped(like.shape(), like.format());
  }
  // Of the pooling.
  static std::vector<Tensor> index(const std::vector<Tensor>& saved) {
    return {saved.begin() + 2, saved.end() - 1};
  }

  void forward(Context& context, const Forward& pass) override {
    if (kernels_) {
      return kernels_->forward(context, norm().blobs(pass.parameters), pass.bottom[0],
                               pass.bottom_sums.empty() ? Tensor() : pass.bottom_sums[0],
                               pass.top[0], kernels_saved(pass.saved), pass.workspace);
    }
    Forward part = pass;
    part.top = {between(pass.saved, pass.bottom[0])};
    part.saved.resize(2);
    norm_->forward(context, part);
    part.bottom = part.top;
    part.top = pass.top;
    part.saved = index(pass.saved);
    pooling_->forward(context, part);
  }

  void backward(Context& context, const Backward& pass) override {
    if (kernels_) {
      BatchNormGradients gradients;
      gradients.dx = pass.bottom_diff[0];
      norm().parameter_gradients(pass, false, gradients);
      return kernels_->backward(context, norm().blobs(pass.parameters), pass.bottom[0],
                                pass.top_diff[0],
                                pass.more_top_diff.empty() ? Tensor() : pass.more_top_diff[0],
                                kernels_saved(pass.saved), gradients, pass.workspace);
    }
    // What the first member made is not read any more: the gradient behind it takes its place.
    Backward part = pass;
    part.bottom = {Tensor()};
    part.bottom_diff = {between(pass.saved, pass.bottom[0])};
    part.saved = index(pass.saved);
    pooling_->backward(context, part);
    part.top_diff = part.bottom_diff;
    part.top = {Tensor()};
    part.bottom = pass.bottom;
    part.bottom_diff = pass.bottom_diff;
    part.saved = {pass.saved[0], pass.saved[1]};
    norm_->backward(context, part);
  }

  std::unique_ptr<Layer> norm_, pooling_;
  std::unique_ptr<BatchNormPool> kernels_;
};

std::unique_ptr<Layer> make() { return std::make_unique<BatchNormPoolLayer>(); }
[[maybe_unused]] const bool joined_types = [] {
  for (const char* type :
       {"BatchNorm+ReLU+Pooling", "BatchNorm+Scale+ReLU+Pooling", "BN+ReLU+Pooling"})
    LayerRegistry::add(type, {make, __FILE__});
  return true;
}();

}  // namespace
}  // namespace crema
