// The autotuner picks the fastest implementation on this card for each call of a convolution or a
// fully connected layer. Candidates: a library's kernel, or im2col without cuDNN; ImplicitGemm,
// which pads no channels, writes float32 gradients and fuses ReLU and bias, so that it often wins
// for small kernels; and implementations that support only a few cases, but those well.
#include <algorithm>
#include <cassert>
#include <utility>

#include "device/cudnn.h"
#include "device/memory.h"
#include "kernels/conv/autotuner_case.h"
#include "kernels/conv/benchmark.h"
#include "kernels/conv/conv_assignment.h"
#include "kernels/conv/dense.h"

namespace crema {
namespace {

// One implementation, with the names that it added to context.chosen.
struct Candidate {
  std::string name;
  std::unique_ptr<LinearKernel> kernel;
  std::vector<std::string> chosen;
};

// ImplicitGemm is no LinearKernel, and is tuned per call: in a ConvAssignment it is the index after
// the last candidate's.
class AutotunedKernel final : public LinearKernel {
 public:
  // candidates: at least one; the first is the library's, unless the case is depthwise. All take
  // weights in the same format, as does ImplicitGemm.
  AutotunedKernel(Context& context, std::vector<Candidate> candidates, const ConvCase& c)
      : candidates_(std::move(candidates)),
        c_(c),
        calls_{c.forward, c.backward_data, c.backward_weights},
        supports_implicit_gemm_(!depthwise(c)),
        format_(candidates_[0].kernel->weights_format()),
        fprop_(context, c, ConvCall::fprop, false),
        dgrad_(context, c, ConvCall::dgrad, c.needs_relu_gradient()),
        wgrad_(context, c, ConvCall::wgrad, c.needs_relu_gradient()) {
    for (const Candidate& candidate : candidates_) {
      assert(same_layout(candidate.kernel->weights_format(), format_, c.w));
      infos_.push_back({candidate.name, candidate.kernel->features().fused_gradients});
    }
    if (supports_implicit_gemm_) infos_.push_back({"implicit_gemm"});
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
    } else if (tuning.candidates() <= 1 ||
               free_memory(context) < Benchmark::bytes(c_, max_workspace())) {
      assigned_ = untimed();
    } else {
      assigned_ = measured(context);
      // Another process may have answered first.
      const std::optional<std::string> others = tuning.remember(key, assigned_.text(infos_));
      if (const std::optional<ConvAssignment> theirs = parse(others)) assigned_ = *theirs;
    }
    // Without timing: takes the products' configurations from the tuning cache, or their defaults.
    if (by_implicit_gemm(ConvCall::fprop)) fprop_.tune(context, {});
    if (by_implicit_gemm(ConvCall::dgrad)) dgrad_.tune(context, {});
    if (by_implicit_gemm(ConvCall::wgrad)) wgrad_.tune(context, {});
    note_chosen(context);
    features_ = assigned_features();
    const bool first_only =
        std::all_of(std::begin(ConvAssignment::kCalls), std::end(ConvAssignment::kCalls),
                    [&](ConvCall call) { return assigned_[call] <= 0; });
    return !first_only || candidates_[0].kernel->features().fused_gradients != fuses_gradients();
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

  void backward_weights_affine(Context& context, const Tensor& x, const Tensor& affine,
                               const Tensor& dy, const Tensor& dw, bool accumulate,
                               const Tensor& workspace) override {
    kernel(ConvCall::wgrad)
        .backward_weights_affine(context, x, affine, dy, dw, accumulate, workspace);
  }
  void forward_with_statistics(Context& context, const Tensor& x, const Tensor& affine,
                               const Tensor& w, const Tensor& y, const Tensor& sums,
                               const Tensor& workspace) override {
    kernel(ConvCall::fprop).forward_with_statistics(context, x, affine, w, y, sums, workspace);
  }

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor& workspace) override {
    if (by_implicit_gemm(ConvCall::fprop)) return run_fprop(context, x, w, b, y, {});
    kernel(ConvCall::fprop).forward(context, x, w, b, y, workspace);
  }
  void forward_with_dropout(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
                            const Tensor& y, const DropoutMask& mask,
                            const Tensor& workspace) override {
    if (by_implicit_gemm(ConvCall::fprop)) return run_fprop(context, x, w, b, y, mask);
    LinearKernel::forward_with_dropout(context, x, w, b, y, mask, workspace);
  }

  void backward_data(Context& context, const OutputGradient& g, const Tensor& w, const Tensor& dx,
                     const Tensor& workspace) override {
    if (!by_implicit_gemm(ConvCall::dgrad))
      return kernel(ConvCall::dgrad).backward_data(context, g, w, dx, workspace);
    ImplicitGemmTensors t = gradient(g);
    t.w = w.raw(), t.out = dx.raw();
    dgrad_.run(context, t);
  }

  void backward_weights(Context& context, const Tensor& x, const OutputGradient& g,
                        const Tensor& dw, const Tensor& db, bool accumulate_w, bool accumulate_b,
                        const Tensor& workspace) override {
    if (!by_implicit_gemm(ConvCall::wgrad)) {
      return kernel(ConvCall::wgrad)
          .backward_weights(context, x, g, dw, db, accumulate_w, accumulate_b, workspace);
    }
    ImplicitGemmTensors t = gradient(g);
    t.x = x.raw(), t.out = dw.raw(), t.db = db.data<float>();
    t.accumulate_w = accumulate_w, t.accumulate_b = accumulate_b;
    wgrad_.run(context, t);
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
    std::string key = cat("conv ", fprop_.key(), c_.bias ? " bias" : "", c_.relu.on ? " relu" : "",
                          c_.relu_gradient_applied ? " taken" : "", c_.dropout ? " dropout" : "",
                          c_.statistics ? " sums" : "", calls_.fprop ? " fprop" : "",
                          calls_.dgrad ? " dgrad" : "", calls_.wgrad ? " wgrad" : "",
                          context.repeatable ? "" : " adds", " by");
    for (const CandidateInfo& info : infos_) key += cat(" ", info.name);
    return key;
  }

  int implicit_gemm_index() const { return static_cast<int>(candidates_.size()); }

  ConvAssignment untimed() const {
    ConvAssignment assigned;
    const int last = static_cast<int>(candidates_.size()) - 1;
    const bool others = operations(c_) >= kSmall && (last > 0 || is_library(infos_[0].name));
    const int choice = !supports_implicit_gemm_ ? 0 : others ? last : implicit_gemm_index();
    if (calls_.fprop) assigned[ConvCall::fprop] = choice;
    if (calls_.dgrad) assigned[ConvCall::dgrad] = choice;
    if (calls_.wgrad) assigned[ConvCall::wgrad] = choice;
    if (!supports_implicit_gemm_ && calls_.dgrad && calls_.wgrad && infos_[0].fused_gradients)
      assigned[ConvCall::both_gradients] = 0;
    return assigned;
  }

  void run_fprop(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
                 const Tensor& y, const DropoutMask& mask) const {
    fprop_.run(context,
               {.x = x.raw(), .w = w.raw(), .b = b.raw(), .out = y.raw(), .dropout = mask});
  }

  static ImplicitGemmTensors gradient(const OutputGradient& g) {
    return {.dy = g.dy.raw(), .y = g.y ? g.y->raw() : nullptr, .gradient_factor = g.factor};
  }

  bool by_implicit_gemm(ConvCall call) const { return assigned_[call] == implicit_gemm_index(); }
  bool fuses_gradients() const {
    return assigned_[ConvCall::both_gradients] != ConvAssignment::kNone;
  }
  // The features of the kernel that computes the call.
  LinearKernelFeatures features_of(ConvCall call) const {
    if (!by_implicit_gemm(call)) return kernel(call).features();
    const bool adds = call == ConvCall::wgrad && wgrad_.adds();
    return {.relu_gradient = true, .bias_gradient = true, .atomic_wgrad = adds};
  }
  LinearKernelFeatures assigned_features() const {
    const auto fprop = features_of(ConvCall::fprop), dgrad = features_of(ConvCall::dgrad),
               wgrad = features_of(ConvCall::wgrad);
    const bool both = fuses_gradients();
    // The caller's pass over dy is spared only where all gradients fuse the ReLU and the bias.
    const bool fused = supports_implicit_gemm_ && (calls_.dgrad || calls_.wgrad) &&
                       (!calls_.dgrad || dgrad.relu_and_bias_gradient()) &&
                       (!calls_.wgrad || wgrad.relu_and_bias_gradient());
    const bool statistics = calls_.fprop && fprop.forward_statistics;
    const bool affine = statistics && fprop.forward_affine_input;
    return {.forward_statistics = statistics,
            .forward_affine_input = affine,
            .wgrad_affine_input = affine && !both && wgrad.wgrad_affine_input,
            .relu_gradient = fused,
            .bias_gradient = fused,
            .atomic_wgrad = (both ? features_of(ConvCall::both_gradients) : wgrad).atomic_wgrad,
            .fused_gradients = both};
  }
  // Not for calls of ImplicitGemm. Of one that the case does not make (kNone), the first candidate.
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
    const Benchmark benchmark(context, c_, format_, max_workspace());
    Best fprop, both, dgrad, wgrad, dgrad_relu, wgrad_relu;  // relu: with the ReLU fused
    const double dropout_time = c_.dropout ? benchmark.dropout_alone() : 0;
    const double statistics_time = c_.statistics ? benchmark.statistics_alone() : 0;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      LinearKernel& kernel = *candidates_[i].kernel;
      const int number = static_cast<int>(i);
      const LinearKernelFeatures features = kernel.features();
      const bool with_relu_and_bias = supports_implicit_gemm_ && features.relu_and_bias_gradient();
      const double passes = dropout_time + (features.forward_statistics ? 0 : statistics_time);
      if (calls_.fprop) fprop.offer(number, benchmark.fprop(kernel) + passes);
      if (calls_.dgrad) {
        const double time = benchmark.dgrad(kernel);
        dgrad.offer(number, time);
        if (with_relu_and_bias) dgrad_relu.offer(number, time);
      }
      if (calls_.wgrad) {
        const double time = benchmark.wgrad(kernel, with_relu_and_bias);
        wgrad.offer(number, time);
        if (with_relu_and_bias) wgrad_relu.offer(number, time);
      }
      if (calls_.dgrad && calls_.wgrad && features.fused_gradients)
        both.offer(number, benchmark.both_gradients(kernel));
    }
    ConvAssignment assigned;
    // Only depthwise kernels fuse the gradients, and ImplicitGemm does not support these cases: so
    // the single gradients have been timed by now.
    if (both.time < dgrad.time + wgrad.time) assigned[ConvCall::both_gradients] = both.candidate;
    if (supports_implicit_gemm_) {
      const auto tuned = [&](ImplicitGemm& product, const ImplicitGemmTensors& tensors) {
        product.tune(context, tensors);
        return benchmark.time([&] { product.run(context, tensors); });
      };
      const int index = implicit_gemm_index();
      if (calls_.fprop)
        fprop.offer(index, tuned(fprop_, benchmark.implicit_gemm_fprop()) + statistics_time);
      if (calls_.dgrad) {
        const double time = tuned(dgrad_, benchmark.implicit_gemm_dgrad());
        dgrad.offer(index, time), dgrad_relu.offer(index, time);
      }
      if (calls_.wgrad) {
        const double time = tuned(wgrad_, benchmark.implicit_gemm_wgrad());
        wgrad.offer(index, time), wgrad_relu.offer(index, time);
      }
      // Where all gradients fuse ReLU and bias, the separate pass for these is spared.
      if (calls_.dgrad || calls_.wgrad) {
        double apart = c_.bias || c_.needs_relu_gradient() ? benchmark.relu_and_bias_alone() : 0,
               fused = 0;
        if (calls_.dgrad) apart += dgrad.time, fused += dgrad_relu.time;
        if (calls_.wgrad) apart += wgrad.time, fused += wgrad_relu.time;
        if (fused < apart) dgrad = dgrad_relu, wgrad = wgrad_relu;
      }
    }
    assigned[ConvCall::fprop] = fprop.candidate;
    assigned[ConvCall::dgrad] = dgrad.candidate;
    assigned[ConvCall::wgrad] = wgrad.candidate;
    return assigned;
  }

  std::vector<Candidate> candidates_;
  ConvCase c_;
  ConvCalls calls_;
  bool supports_implicit_gemm_;
  Format format_;
  std::vector<CandidateInfo> infos_;  // of candidates_, then of ImplicitGemm if it is supported
  ImplicitGemm fprop_, dgrad_, wgrad_;
  ConvAssignment assigned_;
  LinearKernelFeatures features_;
};

// A decorator over the other implementations of an operation: the winners of `names`, in which those
// that decline are left out, or the first alone. The first must take the case.
template <typename Case>
std::unique_ptr<LinearKernel> autotuned(Context& context, const ConvCase& c, std::string& reason,
                                        const KernelMakers<LinearKernel, Case>& kernels,
                                        const Case& made_for,
                                        const std::vector<const char*>& names) {
  if (!depthwise(c) && !ImplicitGemm::supports(c, reason)) return nullptr;
  if (!has_async_mma(context, reason)) return nullptr;
  if (operations(c) > kMaxTunedOperations && c.x_channels == 0 && c.groups == 1 &&
      is_library(names[0])) {
    reason = "a large product of many channels";
    return nullptr;
  }
  std::vector<Candidate> made;
  for (const char* name : names) {
    const auto recorded = static_cast<int64_t>(context.chosen.size());
    std::string refusal;
    std::unique_ptr<LinearKernel> kernel = kernels.make_named(name, context, made_for, refusal);
    Candidate candidate{
        name, std::move(kernel), {context.chosen.begin() + recorded, context.chosen.end()}};
    context.chosen.resize(static_cast<size_t>(recorded));
    if (candidate.kernel) made.push_back(std::move(candidate));
    if (made.empty()) {
      reason = refusal;
      return nullptr;
    }
  }
  auto kernel = std::make_unique<AutotunedKernel>(context, std::move(made), c);
  if (!kernel->choose(context)) return kernel->first();
  return kernel;
}

// All implementations for GPUs that may be fast, the library's first.
std::vector<const char*> conv_candidates() {
  std::vector<const char*> names;
  for (const Implementation& one : conv_kernels) {
    const std::string_view name = one.name;
    if (one.runs_on(Device::gpu) && one.priority < kAutotunedPriority && !is_for_depthwise(name) &&
        name != "plain" && (name != "im2col" || !has_cudnn()))
      names.insert(names.begin(), one.name);
  }
  return names;
}

std::unique_ptr<LinearKernel> make_conv_autotuned(Context& context, const ConvCase& c,
                                                  std::string& reason) {
  if (depthwise(c)) {
    // For these cuDNN would compile candidates for seconds, and was slower where measured.
    std::string refusal;
    const auto noted = context.chosen.size();
    const bool supported = conv_kernels.make_named("depthwise", context, c, refusal) != nullptr;
    context.chosen.resize(noted);
    if (supported)
      return autotuned(context, c, reason, conv_kernels, c, {"depthwise", "depthwise_tensor"});
  }
  return autotuned(context, c, reason, conv_kernels, c, conv_candidates());
}

std::unique_ptr<LinearKernel> make_dense_autotuned(Context& context, const DenseCase& c,
                                                   std::string& reason) {
  if (!c.transposed)
    return autotuned(context, conv_case_of(c), reason, dense_kernels, c, {"cublas"});
  reason = "transposed weights";
  return nullptr;
}

REGISTER_KERNEL(conv_kernels, "autotuned", RunsOn::gpu, kAutotunedPriority, make_conv_autotuned);
REGISTER_KERNEL(dense_kernels, "autotuned", RunsOn::gpu, kAutotunedPriority, make_dense_autotuned);

}  // namespace
}  // namespace crema
