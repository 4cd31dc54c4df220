// The autotuner picks the fastest implementation on this card for each call of a convolution or a
// fully connected layer. Candidates are the operation's other implementations for GPUs: a
// library's, or im2col without cuDNN; those that support only a few cases, but those well; and
// those that pad no channels, write float32 gradients and fuse ReLU and bias, so that they often
// win for small kernels.
#include <algorithm>
#include <cassert>
#include <string_view>
#include <utility>

#include "device/cudnn.h"
#include "kernels/conv/benchmark.h"
#include "kernels/conv/conv_assignment.h"
#include "kernels/conv/dense.h"
#include "kernels/conv/implicit_gemm/tf32_gemm.h"

namespace crema {
namespace {

// Above, benchmarking is not profitable: with enough channels for tensor cores, libraries win.
constexpr double kMaxTunedOperations = 40e9;
constexpr double kSmall = 1e9;           // below, a general kernel of our own if nothing is timed
constexpr int kAutotunedPriority = 100;  // tried before all others, which are its candidates

double operations(const ConvCase& c) {
  return 2.0 * static_cast<double>(c.y.count()) * static_cast<double>(c.w.count(1));
}

// im2col writes the patches that our own kernels only gather: it wins where they have none.
bool is_library(std::string_view name) { return name != "im2col"; }

// Those that decline other cases, and are the only candidates for theirs.
bool is_for_depthwise(std::string_view name) { return name.starts_with("depthwise"); }

struct Candidate {
  const Implementation* implementation;
  std::unique_ptr<LinearKernel> kernel;
  std::vector<std::string> chosen;  // the names that its maker added to context.chosen
};

class AutotunedKernel final : public LinearKernel {
 public:
  // candidates: at least one; the first supports all calls. All take weights in the same format.
  AutotunedKernel(std::vector<Candidate> candidates, const ConvCase& c)
      : candidates_(std::move(candidates)),
        c_(c),
        calls_(c.calls()),
        format_(candidates_[0].kernel->weights_format()) {
    for (const Candidate& candidate : candidates_) {
      assert(same_layout(candidate.kernel->weights_format(), format_, c.w));
      const LinearKernelFeatures features = candidate.kernel->features();
      infos_.push_back({candidate.implementation->name, features.fused_gradients, features.calls});
    }
  }

  // False: the first candidate is chosen for all calls.
  bool choose(Context& context) {
    Tuning& tuning = context.gpu().tuning;
    const std::string key = this->key(context);
    const auto parse = [&](const std::optional<std::string>& text) {
      return text ? ConvAssignment::parse(*text, calls_, infos_) : std::nullopt;
    };
    if (const std::optional<ConvAssignment> known = parse(tuning.find(key))) {
      assigned_ = *known;
    } else if (tuning.candidates() <= 1 || !Benchmark::fits(context, c_, max_workspace())) {
      assigned_ = untimed();
    } else {
      assigned_ = measured(context);
      // Another process may have answered first.
      const std::optional<std::string> others = tuning.remember(key, assigned_.text(infos_));
      if (const std::optional<ConvAssignment> theirs = parse(others)) assigned_ = *theirs;
    }
    note_chosen(context);
    features_ = assigned_features();
    const bool first_only =
        std::all_of(std::begin(ConvAssignment::kCalls), std::end(ConvAssignment::kCalls),
                    [&](ConvCall call) { return assigned_[call] <= 0; });
    return !first_only || infos_[0].fused_gradients != fuses_gradients();
  }

  std::unique_ptr<LinearKernel> first() { return std::move(candidates_[0].kernel); }

  Format weights_format() const override { return format_; }
  size_t workspace() const override {
    size_t bytes = 0;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (has_call(i)) bytes = std::max(bytes, candidates_[i].kernel->workspace());
    }
    return bytes;
  }
  LinearKernelFeatures features() const override { return features_; }

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor& workspace) override {
    kernel(ConvCall::fprop).forward(context, x, w, b, y, workspace);
  }
  void forward_with_dropout(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
                            const Tensor& y, const DropoutMask& mask,
                            const Tensor& workspace) override {
    kernel(ConvCall::fprop).forward_with_dropout(context, x, w, b, y, mask, workspace);
  }
  void forward_with_sum(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
                        const Tensor& added, Relu relu, const Tensor& y,
                        const Tensor& workspace) override {
    kernel(ConvCall::fprop).forward_with_sum(context, x, w, b, added, relu, y, workspace);
  }
  void forward_with_statistics(Context& context, const Tensor& x, const Tensor& affine,
                               const Tensor& w, const Tensor& y, const Tensor& sums,
                               const Tensor& workspace) override {
    kernel(ConvCall::fprop).forward_with_statistics(context, x, affine, w, y, sums, workspace);
  }
  void backward_data(Context& context, const OutputGradient& g, const Tensor& w, const Tensor& dx,
                     const Tensor& workspace) override {
    kernel(ConvCall::dgrad).backward_data(context, g, w, dx, workspace);
  }
  void backward_weights(Context& context, const Tensor& x, const OutputGradient& g,
                        const Tensor& dw, const Tensor& db, bool accumulate_w, bool accumulate_b,
                        const Tensor& workspace) override {
    kernel(ConvCall::wgrad)
        .backward_weights(context, x, g, dw, db, accumulate_w, accumulate_b, workspace);
  }
  void backward_weights_affine(Context& context, const Tensor& x, const Tensor& affine,
                               const Tensor& dy, const Tensor& dw, bool accumulate,
                               const Tensor& workspace) override {
    kernel(ConvCall::wgrad)
        .backward_weights_affine(context, x, affine, dy, dw, accumulate, workspace);
  }
  void backward_both(Context& context, const Tensor& x, const OutputGradient& g, const Tensor& w,
                     const Tensor& dx, const Tensor& dw, const Tensor& db, bool accumulate_w,
                     bool accumulate_b, const Tensor& workspace) override {
    if (fuses_gradients()) {
      kernel(ConvCall::both_gradients)
          .backward_both(context, x, g, w, dx, dw, db, accumulate_w, accumulate_b, workspace);
    } else {
      LinearKernel::backward_both(context, x, g, w, dx, dw, db, accumulate_w, accumulate_b,
                                  workspace);
    }
  }

 private:
  // What the answer depends on.
  std::string key(const Context& context) const {
    std::string key = cat("autotuned ", sizes_of(c_), c_.bias ? " bias" : "",
                          c_.relu.on ? " relu" : "", c_.relu_gradient_applied ? " taken" : "",
                          c_.dropout ? " dropout" : "", c_.statistics ? " sums" : "",
                          calls_.fprop ? " fprop" : "", calls_.dgrad ? " dgrad" : "",
                          calls_.wgrad ? " wgrad" : "", context.repeatable ? "" : " adds", " by");
    for (const CandidateInfo& info : infos_) key += cat(" ", info.name);
    return key;
  }

  ConvAssignment untimed() const {
    size_t special = 0, general = 0;  // the last for special cases, the first general one
    for (size_t i = 1; i < candidates_.size(); ++i) {
      if (candidates_[i].implementation->priority > candidates_[0].implementation->priority) {
        special = i;
      } else if (general == 0) {
        general = i;
      }
    }
    const bool is_small = operations(c_) < kSmall || (special == 0 && !is_library(infos_[0].name));
    // None is general for depthwise convolutions: it takes the first.
    const size_t choice = general == 0 ? 0 : is_small ? general : special;
    ConvAssignment assigned;
    for (ConvCall call : ConvAssignment::kCalls) {
      if (!calls_.has(call)) continue;
      if (infos_[choice].supports(call)) {
        assigned[call] = static_cast<int>(choice);
      } else if (call != ConvCall::both_gradients) {
        assigned[call] = 0;
      }
    }
    return assigned;
  }

  bool fuses_gradients() const {
    return assigned_[ConvCall::both_gradients] != ConvAssignment::kNone;
  }
  LinearKernelFeatures assigned_features() const {
    const auto fprop = kernel(ConvCall::fprop).features(),
               dgrad = kernel(ConvCall::dgrad).features(),
               wgrad = kernel(ConvCall::wgrad).features();
    const bool both = fuses_gradients();
    // The caller's pass over dy is spared only where all gradients fuse the ReLU and the bias.
    const bool fused = (calls_.dgrad || calls_.wgrad) &&
                       (!calls_.dgrad || dgrad.relu_and_bias_gradient()) &&
                       (!calls_.wgrad || wgrad.relu_and_bias_gradient());
    const bool statistics = calls_.fprop && fprop.forward_statistics;
    const bool affine = statistics && fprop.forward_affine_input;
    return {
        .forward_statistics = statistics,
        .forward_affine_input = affine,
        .wgrad_affine_input = affine && !both && wgrad.wgrad_affine_input,
        .relu_gradient = fused,
        .bias_gradient = fused,
        .atomic_wgrad = (both ? kernel(ConvCall::both_gradients).features() : wgrad).atomic_wgrad,
        .fused_gradients = both,
        .dropout = fprop.dropout,
        .sum = fprop.sum};
  }
  // The kernel that makes this call; the first candidate if the case has no such call (kNone).
  LinearKernel& kernel(ConvCall call) const {
    return *candidates_[static_cast<size_t>(std::max(assigned_[call], 0))].kernel;
  }
  bool has_call(size_t candidate) const {
    return std::any_of(
        std::begin(ConvAssignment::kCalls), std::end(ConvAssignment::kCalls),
        [&](ConvCall call) { return assigned_[call] == static_cast<int>(candidate); });
  }
  size_t max_workspace() const {
    size_t bytes = 0;
    for (const Candidate& candidate : candidates_)
      bytes = std::max(bytes, candidate.kernel->workspace());
    return bytes;
  }
  // What the chosen candidates noted, then "implicit_gemm fprop", "space_to_depth wgrad".
  void note_chosen(Context& context) const {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const std::vector<std::string>& names = candidates_[i].chosen;
      if (has_call(i)) context.chosen.insert(context.chosen.end(), names.begin(), names.end());
    }
    for (ConvCall call : ConvAssignment::kCalls) {
      const bool single = call == ConvCall::dgrad || call == ConvCall::wgrad;
      if (assigned_[call] <= 0 || (single && fuses_gradients())) continue;
      context.chosen.push_back(
          cat(infos_[static_cast<size_t>(assigned_[call])].name, " ", name_of(call)));
    }
  }

  // The fastest so far of one call.
  struct Best {
    int candidate = ConvAssignment::kNone;
    double time = 1e30;
    void offer(int number, double milliseconds) {
      if (milliseconds < time) candidate = number, time = milliseconds;
    }
  };

  // Times all candidates on tensors of the case.
  ConvAssignment measured(Context& context) {
    const Tuning::Spending spending(context.gpu().tuning);
    const Benchmark benchmark(context, c_, format_, max_workspace());
    Best fprop, both, dgrad, wgrad, dgrad_relu, wgrad_relu;  // relu: with the ReLU fused
    const double dropout_time = c_.dropout ? benchmark.dropout_alone() : 0;
    const double statistics_time = c_.statistics ? benchmark.statistics_alone() : 0;
    // The pass that kernels spare which fuse ReLU and bias into their gradients.
    const bool gradients = calls_.dgrad || calls_.wgrad;
    const double pass_time =
        gradients && (c_.bias || c_.needs_relu_gradient()) ? benchmark.relu_and_bias_alone() : 0;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      LinearKernel& kernel = *candidates_[i].kernel;
      const int number = static_cast<int>(i);
      const auto makes = [&](ConvCall call) {
        return calls_.has(call) && infos_[i].supports(call);
      };
      const LinearKernelFeatures features = kernel.features();
      const bool with_relu_and_bias = features.relu_and_bias_gradient();
      const double spared = with_relu_and_bias ? pass_time : 0;
      if (makes(ConvCall::fprop)) {
        kernel.tune(context, benchmark, ConvCall::fprop, fprop.time);
        fprop.offer(number, benchmark.fprop(kernel, fprop.time) +
                                (features.dropout ? 0 : dropout_time) +
                                (features.forward_statistics ? 0 : statistics_time));
      }
      if (makes(ConvCall::dgrad)) {
        kernel.tune(context, benchmark, ConvCall::dgrad, dgrad.time + spared);
        const double time = benchmark.dgrad(kernel, dgrad.time + spared);
        dgrad.offer(number, time);
        if (with_relu_and_bias) dgrad_relu.offer(number, time);
      }
      if (makes(ConvCall::wgrad)) {
        kernel.tune(context, benchmark, ConvCall::wgrad, wgrad.time + spared);
        const double time = benchmark.wgrad(kernel, wgrad.time + spared);
        wgrad.offer(number, time);
        if (with_relu_and_bias) wgrad_relu.offer(number, time);
      }
      if (makes(ConvCall::both_gradients))
        both.offer(number, benchmark.both_gradients(kernel, both.time));
    }
    ConvAssignment assigned;
    // Only depthwise kernels fuse the gradients, and none of their candidates fuses ReLU and bias.
    if (both.time < dgrad.time + wgrad.time) assigned[ConvCall::both_gradients] = both.candidate;
    // Where all gradients fuse ReLU and bias, the separate pass for these is spared.
    if (gradients) {
      double apart = pass_time, fused = 0;
      if (calls_.dgrad) apart += dgrad.time, fused += dgrad_relu.time;
      if (calls_.wgrad) apart += wgrad.time, fused += wgrad_relu.time;
      if (fused < apart) dgrad = dgrad_relu, wgrad = wgrad_relu;
    }
    assigned[ConvCall::fprop] = fprop.candidate;
    assigned[ConvCall::dgrad] = dgrad.candidate;
    assigned[ConvCall::wgrad] = wgrad.candidate;
    return assigned;
  }

  std::vector<Candidate> candidates_;
  ConvCase c_;
  ConvCalls calls_;
  Format format_;
  std::vector<CandidateInfo> infos_;  // of candidates_
  ConvAssignment assigned_;
  LinearKernelFeatures features_;
};

// The implementations to choose from: the first, then those of higher priority, which are for
// special cases, from the lowest on, then the general ones of lower priority.
std::vector<const Implementation*> candidates_after(std::string_view first,
                                                    const Operation& kernels) {
  std::vector<const Implementation*> all;
  for (const Implementation& one : kernels) {
    const std::string_view name = one.name;
    const bool other_library = name == "im2col" && name != first;
    if (!one.runs_on(Device::gpu) || one.priority >= kAutotunedPriority || name == "plain" ||
        is_for_depthwise(name) != is_for_depthwise(first) || other_library)
      continue;
    const bool special = all.empty() || all.front()->name != first;
    all.insert(special ? all.begin() : all.end(), &one);
  }
  return all;
}

// A decorator over the other implementations of an operation: the winners of the candidates after
// `first`, which must take the case, or that alone.
template <typename Case>
std::unique_ptr<LinearKernel> autotuned(Context& context, const ConvCase& c, std::string& reason,
                                        const KernelMakers<LinearKernel, Case>& kernels,
                                        const Case& made_for, std::string_view first) {
  if (!has_async_mma(context, reason)) return nullptr;
  if (operations(c) > kMaxTunedOperations && c.x_channels == 0 && c.groups == 1 &&
      is_library(first)) {
    reason = "a large product of many channels";
    return nullptr;
  }
  std::vector<Candidate> made;
  for (const Implementation* one : candidates_after(first, kernels)) {
    const auto recorded = static_cast<int64_t>(context.chosen.size());
    std::string refusal;
    std::unique_ptr<LinearKernel> kernel =
        kernels.make_named(one->name, context, made_for, refusal);
    Candidate candidate{
        one, std::move(kernel), {context.chosen.begin() + recorded, context.chosen.end()}};
    context.chosen.resize(static_cast<size_t>(recorded));
    if (candidate.kernel) made.push_back(std::move(candidate));
    if (made.empty()) {
      reason = refusal;
      return nullptr;
    }
  }
  auto kernel = std::make_unique<AutotunedKernel>(std::move(made), c);
  if (!kernel->choose(context)) return kernel->first();
  return kernel;
}

std::unique_ptr<LinearKernel> make_conv_autotuned(Context& context, const ConvCase& c,
                                                  std::string& reason) {
  // For these cuDNN would compile candidates for seconds, and was slower where measured.
  const bool depthwise = is_half(c.dtype) && c.order == Order::channels_last && c.x.axes() == 4 &&
                         c.groups > 1 && c.groups == c.x[1] && c.groups == c.y[1];
  if (depthwise) return autotuned(context, c, reason, conv_kernels, c, "depthwise");
  if (!Tf32Gemm::supports(c, reason) && (c.dtype == DType::f32 || !supports_products(c, reason)))
    return nullptr;
  ConvCase parts = c;
  parts.is_candidate = true;
  return autotuned(context, c, reason, conv_kernels, parts, has_cudnn() ? "cudnn" : "im2col");
}

std::unique_ptr<LinearKernel> make_dense_autotuned(Context& context, const DenseCase& c,
                                                   std::string& reason) {
  const ConvCase conv = conv_case_of(c);
  if (c.transposed) {
    reason = "transposed weights";
  } else if (supports_products(conv, reason)) {
    DenseCase parts = c;
    parts.is_candidate = true;
    return autotuned(context, conv, reason, dense_kernels, parts, "cublas");
  }
  return nullptr;
}

REGISTER_KERNEL(conv_kernels, "autotuned", RunsOn::gpu, kAutotunedPriority, make_conv_autotuned);
REGISTER_KERNEL(dense_kernels, "autotuned", RunsOn::gpu, kAutotunedPriority, make_dense_autotuned);

}  // namespace
}  // namespace crema
