// Convolution by cuDNN's graph API: one to three spatial axes (one is treated as two), with bias
// and ReLU in the forward plan if cuDNN has such a plan. cuDNN handles groups itself or, for the
// implementation "per_group", runs one convolution per group, for which it has kernels that grouped
// ones lack.
#include <algorithm>

#include "kernels/conv/conv_cudnn_norm.h"
#include "kernels/conv/cudnn_support.h"
#include "kernels/move/reorder.h"
#include "kernels/pointwise/add.h"
#include "kernels/pointwise/bias.h"
#include "tensor/on.h"
#include "tensor/part.h"

namespace crema {
namespace {

namespace graph = cudnn_frontend::graph;
using Integers = ConvParams::Integers;
using enum ConvParams::Tag;

class CudnnConv final : public LinearKernel {
 public:
  CudnnConv(const ConvCase& c, bool groups_apart) : c_(c), params_(c, groups_apart) {}

  bool prepare(const CudnnTarget& target, std::string& reason) {
    // All look for their plans at the same time.
    if (c_.forward) fused_ = start_fused_fprop(target);
    if (c_.forward && !fused_) start_fprop(target);
    if (c_.backward_data) start_dgrad(target);
    if (c_.backward_weights) start_wgrad(target);
    if (c_.forward && c_.statistics && !fused_) norm_.start(target, c_, params_);
    if (fused_ && !fprop_->build(reason)) {
      fused_ = false;
      start_fprop(target);
    }
    if (c_.forward && !fused_ && !fprop_->build(reason)) return false;
    if (dgrad_ && !dgrad_->build(reason)) return false;
    if (wgrad_ && !wgrad_->build(reason)) return false;
    if (wgrad_) gradient_bytes_ = weights_bytes();
    if (c_.forward && c_.statistics && !fused_)
      norm_.prepare(target, c_, params_, *fprop_, wgrad_.get());
    return true;
  }

  bool fused() const { return fused_; }
  LinearKernelFeatures features() const override {
    return {.forward_statistics = norm_.sums != nullptr,
            .forward_affine_input = norm_.affine != nullptr,
            .wgrad_affine_input = norm_.affine_wgrad != nullptr,
            .sum = c_.sum && fused_};
  }
  Format weights_format() const override { return {c_.order, nullptr, c_.x_channels}; }
  size_t workspace() const override {
    const auto of = [](const std::unique_ptr<CudnnGraph>& g) { return g ? g->workspace() : 0; };
    return std::max({of(fprop_), of(norm_.sums), of(norm_.affine), of(dgrad_),
                     gradient_bytes_ + std::max(of(wgrad_), of(norm_.affine_wgrad))});
  }

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor& workspace) override {
    run_fprop(context, x, w, b, {}, y, workspace);
    if (fused_) return;
    const int64_t points = c_.y.count(2);
    const bool last = params_.channels_last;
    on_real(y, [&]<typename T>() {
      add_bias(context, last ? c_.y[0] * points : c_.y[0], c_.y[1], last ? 1 : points,
               b ? b.data<T>() : nullptr, c_.relu, y.data<T>());
    });
  }

  void forward_with_sum(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
                        const Tensor& added, Relu relu, const Tensor& y,
                        const Tensor& workspace) override {
    if (!fused_) return LinearKernel::forward_with_sum(context, x, w, b, added, relu, y, workspace);
    run_fprop(context, x, w, b, added, y, workspace);
  }

  void forward_with_statistics(Context& context, const Tensor& x, const Tensor& affine,
                               const Tensor& w, const Tensor& y, const Tensor& sums,
                               const Tensor& workspace) override {
    float* const sum = sums.data<float>();
    std::vector<CudnnGraph::Bound> tensors = {
        {kX, x.raw()}, {kW, w.raw()}, {kY, y.raw()}, {kSum, sum}, {kSquares, sum + c_.y[1]}};
    if (affine) {
      Half* const scale = affine.data<Half>();
      tensors.push_back({kScale, scale});
      tensors.push_back({kShift, scale + c_.x[1]});
    }
    run(context, affine ? *norm_.affine : *norm_.sums, tensors, workspace.raw());
  }

  void backward_data(Context& context, const OutputGradient& g, const Tensor& w, const Tensor& dx,
                     const Tensor& workspace) override {
    run(context, *dgrad_, {{kX, dx.raw()}, {kW, w.raw()}, {kY, g.dy.raw()}}, workspace.raw());
  }

  void backward_weights(Context& context, const Tensor& x, const OutputGradient& g,
                        const Tensor& dw, const Tensor&, bool accumulate, bool,
                        const Tensor& workspace) override {
    run_wgrad(context, *wgrad_, {{kX, x.raw()}, {kY, g.dy.raw()}}, dw, accumulate, workspace);
  }

  void backward_weights_affine(Context& context, const Tensor& x, const Tensor& affine,
                               const Tensor& dy, const Tensor& dw, bool accumulate,
                               const Tensor& workspace) override {
    Half* const scale = affine.data<Half>();
    run_wgrad(context, *norm_.affine_wgrad,
              {{kX, x.raw()}, {kY, dy.raw()}, {kScale, scale}, {kShift, scale + c_.x[1]}}, dw,
              accumulate, workspace);
  }

 private:
  void run_fprop(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
                 const Tensor& added, const Tensor& y, const Tensor& workspace) const {
    std::vector<CudnnGraph::Bound> tensors = {{kX, x.raw()}, {kW, w.raw()}, {kY, y.raw()}};
    if (fused_ && c_.bias) tensors.push_back({kB, b.raw()});
    if (added) tensors.push_back({kAdded, added.raw()});
    run(context, *fprop_, tensors, workspace.raw());
  }

  // cuDNN cannot accumulate, and writes 16 bits if it reads 16 bits.
  void run_wgrad(Context& context, CudnnGraph& graph, std::vector<CudnnGraph::Bound> tensors,
                 const Tensor& dw, bool accumulate, const Tensor& workspace) const {
    const bool apart = accumulate || dw.dtype() != c_.dtype;
    const Tensor goal = apart ? scratch(workspace) : dw;
    tensors.push_back({kW, goal.raw()});
    run(context, graph, tensors, workspace.data<char>() + gradient_bytes_);
    if (accumulate) {
      add_to(context, goal, dw);
    } else if (apart) {
      reorder(context, goal, dw);
    }
  }
  // The start of the workspace, which holds weights or their gradient in the plans' format.
  Tensor scratch(const Tensor& workspace) const {
    return part_of(workspace, 0, c_.w, c_.dtype, weights_format());
  }
  size_t weights_bytes() const {
    return aligned(static_cast<size_t>(weights_format().elements(c_.w)) * size_of(c_.dtype));
  }
  std::string key(const char* what) const { return params_.key(c_, what); }

  void run(Context& context, CudnnGraph& graph, std::vector<CudnnGraph::Bound> tensors,
           void* workspace) const {
    for (int64_t part = 0; part < params_.parts; ++part) {
      graph.run(context, tensors, workspace);
      for (CudnnGraph::Bound& bound : tensors) {
        bound.memory = static_cast<char*>(bound.memory) +
                       params_.step(bound.uid) * static_cast<int64_t>(size_of(c_.dtype));
      }
    }
  }

  void start_fprop(const CudnnTarget& target) {
    const ConvParams& n = params_;
    fprop_ = std::make_unique<CudnnGraph>(c_.dtype);
    const auto x = n.input(*fprop_, n.x, kX), w = n.input(*fprop_, n.w, kW);
    n.output(*fprop_,
             fprop_->graph().conv_fprop(x, w, n.attributes<graph::Conv_fprop_attributes>()), n.y,
             kY);
    fprop_->start(target, c_.precision, key("forward"));
  }

  void start_dgrad(const CudnnTarget& target) {
    const ConvParams& n = params_;
    dgrad_ = std::make_unique<CudnnGraph>(c_.dtype);
    const auto dy = n.input(*dgrad_, n.y, kY), w = n.input(*dgrad_, n.w, kW);
    n.output(*dgrad_,
             dgrad_->graph().conv_dgrad(dy, w, n.attributes<graph::Conv_dgrad_attributes>()), n.x,
             kX);
    dgrad_->start(target, c_.precision, key("data"));
  }

  void start_wgrad(const CudnnTarget& target) {
    const ConvParams& n = params_;
    wgrad_ = std::make_unique<CudnnGraph>(c_.dtype);
    const auto dy = n.input(*wgrad_, n.y, kY), x = n.input(*wgrad_, n.x, kX);
    n.output(*wgrad_,
             wgrad_->graph().conv_wgrad(dy, x, n.attributes<graph::Conv_wgrad_attributes>()), n.w,
             kW);
    wgrad_->start(target, c_.precision, key("weights"));
  }

  // Sum, bias and ReLU in one plan. For exact float32 no such plan is profitable.
  bool start_fused_fprop(const CudnnTarget& target) {
    const Relu relu = c_.sum ? c_.sum_relu : c_.relu;
    if (c_.precision == Precision::fp32 || !(c_.bias || c_.sum) || (relu.on && relu.slope != 0))
      return false;
    const ConvParams& n = params_;
    fprop_ = std::make_unique<CudnnGraph>(c_.dtype);
    graph::Graph& g = fprop_->graph();
    const auto x = n.input(*fprop_, n.x, kX), w = n.input(*fprop_, n.w, kW);
    const auto pointwise = [](cudnn_frontend::PointwiseMode_t mode) {
      return graph::Pointwise_attributes().set_mode(mode);
    };
    auto y = g.conv_fprop(x, w, n.attributes<graph::Conv_fprop_attributes>());
    const auto add = [&](const Integers& dims, ConvParams::Tag tag) {
      y = g.pointwise(y, n.input(*fprop_, dims, tag),
                      pointwise(cudnn_frontend::PointwiseMode_t::ADD));
    };
    if (c_.sum) add(n.y, kAdded);
    if (c_.bias) {
      Integers one(n.y.size(), 1);
      one[1] = n.y[1];
      add(one, kB);
    }
    if (relu.on) y = g.pointwise(y, pointwise(cudnn_frontend::PointwiseMode_t::RELU_FWD));
    n.output(*fprop_, y, n.y, kY);
    fprop_->start(target, c_.precision, key(fused_name(relu)));
    return true;
  }

  const char* fused_name(Relu relu) const {
    if (!c_.bias) return relu.on ? "relu" : "sum";
    return relu.on ? "bias relu" : "bias";  // and the sum, which sizes_of() names
  }

  ConvCase c_;
  ConvParams params_;
  std::unique_ptr<CudnnGraph> fprop_, dgrad_, wgrad_;
  ConvNormPlans norm_;
  bool fused_ = false;         // the forward plan includes bias and ReLU
  size_t gradient_bytes_ = 0;  // of a weight gradient that still has to be accumulated or widened
};

}  // namespace

CudnnSupport conv_cudnn_support(const ConvCase& c, const std::string& card, bool groups_apart) {
  CudnnSupport support;
  CudnnConv conv(c, groups_apart);
  support.chosen = conv.prepare(CudnnTarget(card), support.reason);
  support.fused = conv.fused();
  const LinearKernelFeatures features = conv.features();
  support.sums = features.forward_statistics;
  support.affine = features.forward_affine_input;
  support.affine_gradient = features.wgrad_affine_input;
  return support;
}

namespace {

std::unique_ptr<LinearKernel> make(Context& context, const ConvCase& c, bool groups_apart,
                                   std::string& reason) {
  if (c.dtype == DType::f64) {
    reason = cat("no ", name_of(c.dtype));
  } else if (c.x.axes() > 5) {
    reason = cat(c.x.axes() - 2, " spatial axes, at most 3");
  } else if (c.x.count() == 0 || c.y.count() == 0) {
    reason = "nothing to compute";
  } else {
    try {
      auto conv = std::make_unique<CudnnConv>(c, groups_apart);
      if (conv->prepare(context, reason)) return conv;
    } catch (const cudnn_frontend::cudnnException& error) {
      reason = error.what();
    }
  }
  return nullptr;
}

std::unique_ptr<LinearKernel> make_conv_cudnn(Context& context, const ConvCase& c,
                                              std::string& reason) {
  return make(context, c, false, reason);
}

std::unique_ptr<LinearKernel> make_conv_per_group(Context& context, const ConvCase& c,
                                                  std::string& reason) {
  constexpr int64_t kMaxGroups = 8, kVector = 8;
  if (!is_half(c.dtype) || c.order != Order::channels_last) {
    reason = "for channels-last images of 16-bit numbers only";
  } else if (c.groups == 1 || c.groups > kMaxGroups) {
    reason = cat(c.groups, " groups, not 2 to ", kMaxGroups);
  } else if (c.w[1] % kVector != 0 || c.w[0] / c.groups % kVector != 0) {
    reason = cat("the channels of a group are no multiples of ", kVector);
  } else {
    return make(context, c, true, reason);
  }
  return nullptr;
}

REGISTER_KERNEL(conv_kernels, "cudnn", RunsOn::gpu, 70, make_conv_cudnn);
REGISTER_KERNEL(conv_kernels, "per_group", RunsOn::gpu, 75, make_conv_per_group);

}  // namespace
}  // namespace crema
