// Convolution by oneDNN: float32 on the CPU, one to three spatial axes. Activations keep the order
// of the case. Weights are stored in the format that the forward pass prefers; if a gradient needs
// another one, they are reordered in the workspace (measured: that costs less than a forward pass
// in a compromise format).
#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/system.h"
#include "kernels/conv/conv.h"
#include "kernels/core/onednn.h"

namespace crema {
namespace {

using onednn::Call;
using onednn::Desc;
using Forward = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

// oneDNN's reference and GEMM implementations are slower than ours.
template <typename Plan>
bool is_good(const Plan& plan, std::string& reason) {
  if (!plan) {
    reason = "it does not support the case";
    return false;
  }
  const std::string_view body = plan.impl_info_str();
  if (body.find("ref") == body.npos && body.find("gemm:") == body.npos) return true;
  reason = cat("it has only \"", body, "\" for the case");
  return false;
}

// oneDNN 2.6's gradient of 1x1 kernels with strides first copies the pixels that it needs to its scratch
// memory, in whole blocks of channels, for which there is no room where the last block is not full: threads
// overwrite each other's pixels, and what follows the memory.
bool overruns_scratchpad(const ConvCase& c, std::string_view body) {
  constexpr int64_t kBlock = 16;  // channels; 8 with AVX2
  const bool strided =
      std::any_of(c.stride.begin(), c.stride.end(), [](int64_t stride) { return stride > 1; });
  return strided && c.w[1] % kBlock != 0 && body.find("1x1") != body.npos;
}

class OnednnConv final : public LinearKernel {
 public:
  // False with the reason when oneDNN does not support the case.
  bool prepare(const ConvCase& c, std::string& reason) {
    for (const std::string& problem :
         {onednn::too_large(c.x), onednn::too_large(c.y), onednn::too_large_weights(c.w)}) {
      if (problem.empty()) continue;
      reason = problem;
      return false;
    }
    const Format activations{c.order, nullptr};
    const Desc x = onednn::describe(c.x, c.dtype, activations),
               y = onednn::describe(c.y, c.dtype, activations);
    const Desc any = onednn::describe_any_weights(c.w, c.groups),
               b = onednn::describe({c.w[0]}, c.dtype, {});
    const Desc used_b = c.bias ? b : Desc();
    dnnl::memory::dims dilation = c.dilation;
    for (auto& step : dilation) step -= 1;  // oneDNN counts the elements between two taps

    const auto kind = c.backward_weights || c.backward_data ? dnnl::prop_kind::forward_training
                                                            : dnnl::prop_kind::forward_inference;
    const auto plan = [&](const dnnl::primitive_attr& attributes) {
      return onednn::plan<Forward>(on_, attributes, kind, kDirect, x, any, used_b, y, c.stride,
                                   dilation, c.pad, c.pad);
    };
    Forward::primitive_desc fprop;
    if (c.sum)
      fprop = plan(onednn::attributes_with_sum(
          y, c.sum_relu.on ? std::optional(c.sum_relu.slope) : std::nullopt));
    sum_ = c.sum && is_good(fprop, reason);
    if (!sum_) {
      fprop = plan(c.relu.on ? onednn::attributes_with_relu(c.relu.slope) : onednn::attributes());
    }
    if (!is_good(fprop, reason)) return false;
    BackwardData::primitive_desc dgrad;
    if (c.backward_data) {
      dgrad = onednn::plan_backward<BackwardData>(on_, onednn::attributes(), fprop, kDirect, x, any,
                                                  y, c.stride, dilation, c.pad, c.pad);
      if (!is_good(dgrad, reason)) return false;
    }
    choose_weights_format(
        c.forward || !c.backward_data ? fprop.weights_desc() : dgrad.weights_desc(), c);

    fprop_ = Call(on_, Forward(fprop),
                  {{DNNL_ARG_SRC, x},
                   {DNNL_ARG_WEIGHTS, fprop.weights_desc()},
                   {DNNL_ARG_BIAS, used_b},
                   {DNNL_ARG_DST, y},
                   {kAdded, sum_ ? y : Desc()},
                   {DNNL_ARG_SCRATCHPAD, fprop.scratchpad_desc()}});
    add_weights_reorder(fprop.weights_desc(), fprop_weights_, &fprop_bytes_);
    grow_workspace(fprop_bytes_ + fprop.scratchpad_desc().get_size());
    if (c.backward_data && !prepare_mirrored(c, x, y, dilation)) {
      dgrad_ = Call(on_, BackwardData(dgrad),
                    {{DNNL_ARG_DIFF_DST, y},
                     {DNNL_ARG_WEIGHTS, dgrad.weights_desc()},
                     {DNNL_ARG_DIFF_SRC, x},
                     {DNNL_ARG_SCRATCHPAD, dgrad.scratchpad_desc()}});
      add_weights_reorder(dgrad.weights_desc(), dgrad_weights_, &dgrad_bytes_);
      grow_workspace(dgrad_bytes_ + dgrad.scratchpad_desc().get_size());
    }
    return !c.backward_weights || prepare_wgrad(c, fprop, x, any, y, b, dilation, reason);
  }

  Format weights_format() const override { return format_; }
  LinearKernelFeatures features() const override { return {.bias_gradient = true, .sum = sum_}; }
  size_t workspace() const override { return workspace_; }

  void forward(Context&, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor& workspace) override {
    run_fprop(x, w, b, {}, y, workspace);
  }
  void forward_with_sum(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
                        const Tensor& added, Relu relu, const Tensor& y,
                        const Tensor& workspace) override {
    if (!sum_) return LinearKernel::forward_with_sum(context, x, w, b, added, relu, y, workspace);
    run_fprop(x, w, b, added, y, workspace);
  }

  void backward_data(Context&, const OutputGradient& g, const Tensor& w, const Tensor& dx,
                     const Tensor& workspace) override {
    char* const scratch = workspace.data<char>();
    if (mirror_) {
      mirror_->run(on_, w.raw(), scratch);
      dgrad_.run(on_, {{DNNL_ARG_SRC, g.dy.raw()},
                       {DNNL_ARG_WEIGHTS, scratch},
                       {DNNL_ARG_DST, dx.raw()},
                       {DNNL_ARG_SCRATCHPAD, scratch + dgrad_bytes_}});
      return;
    }
    void* const weights = in_format(dgrad_weights_, w, scratch);
    dgrad_.run(on_, {{DNNL_ARG_DIFF_DST, g.dy.raw()},
                     {DNNL_ARG_WEIGHTS, weights},
                     {DNNL_ARG_DIFF_SRC, dx.raw()},
                     {DNNL_ARG_SCRATCHPAD, scratch + dgrad_bytes_}});
  }

  void backward_weights(Context&, const Tensor& x, const OutputGradient& g, const Tensor& dw,
                        const Tensor& db, bool accumulate_w, bool accumulate_b,
                        const Tensor& workspace) override {
    char* const scratch = workspace.data<char>();
    const bool direct = !accumulate_w && !write_weights_;
    const bool own_bias =
        has_bias_gradient_ && (!db || accumulate_b);  // the primitive always writes, and overwrites
    float* const bias = reinterpret_cast<float*>(scratch + wgrad_bytes_);
    wgrad_.run(on_, {{DNNL_ARG_SRC, x.raw()},
                     {DNNL_ARG_DIFF_DST, g.dy.raw()},
                     {DNNL_ARG_DIFF_WEIGHTS, direct ? dw.raw() : scratch},
                     {DNNL_ARG_DIFF_BIAS, own_bias ? bias : db.raw()},
                     {DNNL_ARG_SCRATCHPAD, scratch + wgrad_bytes_ + bias_bytes_}});
    if (!direct) {
      Call& move = accumulate_w ? add_weights_ : write_weights_;
      move.run(on_, {{DNNL_ARG_FROM, scratch}, {DNNL_ARG_TO, dw.raw()}});
    }
    if (db && own_bias) {
      for (int64_t i = 0; i < db.count(); ++i) db.data<float>()[i] += bias[i];
    }
  }

 private:
  static constexpr int kAdded = DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1;

  void run_fprop(const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& added,
                 const Tensor& y, const Tensor& workspace) {
    char* const scratch = workspace.data<char>();
    void* const weights = in_format(fprop_weights_, w, scratch);
    fprop_.run(on_, {{DNNL_ARG_SRC, x.raw()},
                     {DNNL_ARG_WEIGHTS, weights},
                     {DNNL_ARG_BIAS, b.raw()},
                     {DNNL_ARG_DST, y.raw()},
                     {kAdded, added.raw()},
                     {DNNL_ARG_SCRATCHPAD, scratch + fprop_bytes_}});
  }

  bool prepare_wgrad(const ConvCase& c, const Forward::primitive_desc& fprop, const Desc& x,
                     const Desc& any, const Desc& y, const Desc& b,
                     const dnnl::memory::dims& dilation, std::string& reason) {
    const Desc used_b = c.bias ? b : Desc();
    auto plan =
        onednn::plan_backward<BackwardWeights>(on_, onednn::attributes(), fprop, kDirect, x, any,
                                               used_b, y, c.stride, dilation, c.pad, c.pad);
    while (plan && overruns_scratchpad(c, plan.impl_info_str())) {
      if (plan.next_impl()) continue;
      reason = "its gradient of the weights writes past its scratch memory";
      return false;
    }
    if (!is_good(plan, reason)) return false;
    const Desc dw = plan.diff_weights_desc();
    wgrad_ = Call(on_, BackwardWeights(plan),
                  {{DNNL_ARG_SRC, x},
                   {DNNL_ARG_DIFF_DST, y},
                   {DNNL_ARG_DIFF_WEIGHTS, dw},
                   {DNNL_ARG_DIFF_BIAS, used_b},
                   {DNNL_ARG_SCRATCHPAD, plan.scratchpad_desc()}});
    if (dw != stored_weights_) write_weights_ = onednn::reorder_call(on_, dw, stored_weights_);
    add_weights_ = onednn::reorder_call(on_, dw, stored_weights_, /*add=*/true);
    has_bias_gradient_ = c.bias;
    wgrad_bytes_ = aligned(dw.get_size());
    bias_bytes_ = c.bias ? aligned(b.get_size()) : 0;
    grow_workspace(wgrad_bytes_ + bias_bytes_ + plan.scratchpad_desc().get_size());
    return true;
  }

  // With stride 1 the data gradient is itself a convolution, of dy with the mirrored weights, and
  // oneDNN's newer forward kernels are 5 to 25 percent faster than its gradient kernels. Not for
  // paddings that would make y grow, nor for small cases, where mirroring the weights takes longer.
  bool prepare_mirrored(const ConvCase& c, const Desc& x, const Desc& y,
                        const dnnl::memory::dims& dilation) {
    constexpr int64_t kProductsForATap = 4'000'000, kPointsForWeights = 512;
    dnnl::memory::dims pad = c.pad;
    for (size_t axis = 0; axis < pad.size(); ++axis) {
      pad[axis] = c.dilation[axis] * (c.w[static_cast<int>(axis) + 2] - 1) - c.pad[axis];
      if (c.stride[axis] != 1 || pad[axis] < 0 || pad[axis] > c.pad[axis]) return false;
    }
    const bool depthwise = c.groups > 1 && (c.w[0] == c.groups || c.w[1] == 1);
    if (depthwise || c.y.count() * c.w[1] < kProductsForATap ||
        c.y.count() < kPointsForWeights * c.w[0])
      return false;
    Shape mirrored = c.w;  // (C, O/groups, kernel...)
    mirrored[0] = c.w[1] * c.groups;
    mirrored[1] = c.w[0] / c.groups;
    const auto plan = onednn::plan<Forward>(
        on_, onednn::attributes(), dnnl::prop_kind::forward_inference, kDirect, y,
        onednn::describe_any_weights(mirrored, c.groups), Desc(), x, c.stride, dilation, pad, pad);
    if (!plan || std::string_view(plan.impl_info_str()).find("brg") == std::string_view::npos)
      return false;
    mirror_ = onednn::Mirror::make(on_, stored_weights_, plan.weights_desc(), c.groups > 1);
    if (!mirror_) return false;
    dgrad_ = Call(on_, Forward(plan),
                  {{DNNL_ARG_SRC, y},
                   {DNNL_ARG_WEIGHTS, plan.weights_desc()},
                   {DNNL_ARG_DST, x},
                   {DNNL_ARG_SCRATCHPAD, plan.scratchpad_desc()}});
    dgrad_bytes_ = aligned(plan.weights_desc().get_size());
    grow_workspace(dgrad_bytes_ + plan.scratchpad_desc().get_size());
    return true;
  }

  // Chooses the format of the stored weights: `wanted`, or row-major when Format cannot express it.
  void choose_weights_format(const Desc& wanted, const ConvCase& c) {
    format_ = onednn::weights_format(wanted, c.w, c.groups).value_or(Format::row_major());
    stored_weights_ = onednn::describe_weights(c.w, format_, c.groups);
  }

  // For a primitive that takes the weights as `weights`: a reorder unless they are stored so.
  void add_weights_reorder(const Desc& weights, Call& reorder, size_t* bytes) {
    if (weights == stored_weights_) return;
    reorder = onednn::reorder_call(on_, stored_weights_, weights);
    *bytes = aligned(weights.get_size());
  }
  void grow_workspace(size_t bytes) { workspace_ = std::max(workspace_, bytes); }

  // The weights in a primitive's format: as they are, or reordered to `scratch`.
  void* in_format(Call& reorder, const Tensor& w, char* scratch) {
    if (!reorder) return w.raw();
    reorder.run(on_, {{DNNL_ARG_FROM, w.raw()}, {DNNL_ARG_TO, scratch}});
    return scratch;
  }

  onednn::Engine on_;
  Format format_;
  Desc stored_weights_;
  Call fprop_, dgrad_, wgrad_;
  Call fprop_weights_, dgrad_weights_, write_weights_, add_weights_;
  std::optional<onednn::Mirror> mirror_;  // backward_data convolves with mirrored weights
  bool has_bias_gradient_ = false;
  bool sum_ = false;  // fprop_ adds a tensor
  // The workspace of each call: first weights (and bias) in the primitive's format, then its
  // scratchpad.
  size_t fprop_bytes_ = 0, dgrad_bytes_ = 0, wgrad_bytes_ = 0, bias_bytes_ = 0, workspace_ = 0;
};

std::unique_ptr<LinearKernel> make_conv_onednn(Context&, const ConvCase& c, std::string& reason) {
  const int axes = c.x.axes() - 2;
  if (!may_generate_code()) {
    reason = "this process may not generate code";
  } else if (!has_room_for_code(kCodeOfConvolution)) {
    reason = "there is no memory for the code that it would generate";
  } else if (c.dtype != DType::f32) {
    reason = cat("no ", name_of(c.dtype));
  } else if (axes > 3) {
    reason = cat(axes, " spatial axes, at most 3");
  } else if (c.x.count() == 0 || c.y.count() == 0) {
    reason = "nothing to compute";
  } else {
    try {
      auto conv = std::make_unique<OnednnConv>();
      if (conv->prepare(c, reason)) return conv;
    } catch (const dnnl::error& error) {
      reason = error.what();
    }
  }
  return nullptr;
}

REGISTER_KERNEL(conv_kernels, "onednn", RunsOn::cpu, 50, make_conv_onednn);

}  // namespace
}  // namespace crema
