// Products (product.h) as implementations of convolutions and fully connected layers.
#include <algorithm>

#include "kernels/conv/benchmark.h"
#include "kernels/conv/dense.h"
#include "kernels/conv/implicit_gemm/direct_conv.h"
#include "kernels/conv/implicit_gemm/implicit_gemm.h"
#include "kernels/conv/implicit_gemm/tf32_gemm.h"

namespace crema {

bool ConvProduct::take_named(const std::optional<std::string>& name) {
  for (size_t choice = 0; choice < choice_count(); ++choice) {
    if (choice_name(choice) != name) continue;
    choice_ = choice;
    return true;
  }
  return false;
}

bool ConvProduct::take_known(Context& context, const std::string& key) {
  Tuning& tuning = context.gpu().tuning;
  return take_named(tuning.find(key)) || tuning.candidates() <= 1;
}

void ConvProduct::tune(Context& context, const std::string& key,
                       const std::function<double(double)>& time, double to_beat) {
  const Tuning::Spending spending(context.gpu().tuning);
  // The default first: next to a good one, most others are soon hopeless. Then some from the whole
  // list, in which neighbors are alike: where these are all hopeless, so were the rest.
  constexpr size_t kSamples = 6;
  const size_t count = choice_count();
  std::vector<size_t> order = {choice_};
  for (size_t i = 0; i < kSamples; ++i) order.push_back(i * (count - 1) / (kSamples - 1));
  const size_t samples = order.size();
  for (size_t choice = 0; choice < count; ++choice) order.push_back(choice);
  std::vector<bool> timed(count);
  size_t fastest = choice_;
  double best = 1e30;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == samples && is_hopeless(best, to_beat)) break;
    if (timed[order[i]]) continue;
    timed[order[i]] = true;
    choice_ = order[i];
    const double milliseconds = time(std::min(best, to_beat));
    if (milliseconds < best) best = milliseconds, fastest = choice_;
  }
  choice_ = fastest;
  take_named(context.gpu().tuning.remember(key, choice_name(fastest)));
}

namespace {

// The calls of a case by products of one kind, those that this kind supports.
class ProductKernel final : public LinearKernel {
 public:
  // make(call): a product. name: of the implementation.
  template <typename Make>
  ProductKernel(const ConvCase& c, const char* name, const Make& make) : c_(c), name_(name) {
    for (ConvCall call : kCalls) {
      if (!c.calls().has(call)) continue;
      auto made = make(call);
      if (made->choice_count() > 0) products_[static_cast<size_t>(call)] = std::move(made);
    }
  }

  // Whether all of the case's calls are supported, or any if it allows that.
  bool suffices() const {
    const auto missing = [&](ConvCall call) { return c_.calls().has(call) && !has(call); };
    return c_.is_candidate ? std::any_of(std::begin(kCalls), std::end(kCalls),
                                         [&](ConvCall call) { return has(call); })
                           : std::none_of(std::begin(kCalls), std::end(kCalls), missing);
  }

  // Takes the choices that the tuning cache has, and times those of the other calls unless
  // tune() follows.
  void choose(Context& context) {
    std::optional<Benchmark> benchmark;
    for (ConvCall call : kCalls) {
      if (!has(call) || of(call).take_known(context, key(call)) || c_.is_candidate) continue;
      if (!benchmark) {
        if (!Benchmark::fits(context, c_, 0)) return;
        benchmark.emplace(context, c_, weights_format(), 0);
      }
      tune(context, *benchmark, call, 1e30);
    }
  }

  void tune(Context& context, const Benchmark& benchmark, ConvCall call, double to_beat) override {
    ConvProduct& product = of(call);
    if (product.take_known(context, key(call))) return;
    const auto time = [&](double best) {
      return call == ConvCall::fprop   ? benchmark.fprop(*this, best)
             : call == ConvCall::dgrad ? benchmark.dgrad(*this, best)
                                       : benchmark.wgrad(*this, best);
    };
    product.tune(context, key(call), time, to_beat);
  }

  Format weights_format() const override { return {c_.order, nullptr, c_.x_channels}; }
  LinearKernelFeatures features() const override {
    const bool fuses = std::all_of(std::begin(kCalls), std::end(kCalls), [&](ConvCall call) {
      return !has(call) || of(call).takes_y_and_db();
    });
    return {.relu_gradient = fuses,
            .bias_gradient = fuses,
            .atomic_wgrad = has(ConvCall::wgrad) && of(ConvCall::wgrad).adds(),
            .dropout = fuses,
            .sum = has(ConvCall::fprop) && of(ConvCall::fprop).takes_sum(),
            .calls = {has(ConvCall::fprop), has(ConvCall::dgrad), has(ConvCall::wgrad)}};
  }

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor& workspace) override {
    forward_with_dropout(context, x, w, b, y, {}, workspace);
  }
  void forward_with_dropout(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
                            const Tensor& y, const DropoutMask& mask, const Tensor&) override {
    of(ConvCall::fprop)
        .run(context, {.x = x.raw(), .w = w.raw(), .b = b.raw(), .out = y.raw(), .dropout = mask});
  }
  void forward_with_sum(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
                        const Tensor& added, Relu relu, const Tensor& y,
                        const Tensor& workspace) override {
    const ConvProduct& product = of(ConvCall::fprop);
    if (!product.takes_sum())
      return LinearKernel::forward_with_sum(context, x, w, b, added, relu, y, workspace);
    product.run(context,
                {.x = x.raw(), .w = w.raw(), .b = b.raw(), .out = y.raw(), .added = added.raw()});
  }
  void backward_data(Context& context, const OutputGradient& g, const Tensor& w, const Tensor& dx,
                     const Tensor&) override {
    ProductTensors t = gradient(g);
    t.w = w.raw(), t.out = dx.raw();
    of(ConvCall::dgrad).run(context, t);
  }
  void backward_weights(Context& context, const Tensor& x, const OutputGradient& g,
                        const Tensor& dw, const Tensor& db, bool accumulate_w, bool accumulate_b,
                        const Tensor&) override {
    ProductTensors t = gradient(g);
    t.x = x.raw(), t.out = dw.raw(), t.db = db.data<float>();
    t.accumulate_w = accumulate_w, t.accumulate_b = accumulate_b;
    of(ConvCall::wgrad).run(context, t);
  }

 private:
  static constexpr ConvCall kCalls[] = {ConvCall::fprop, ConvCall::dgrad, ConvCall::wgrad};

  static ProductTensors gradient(const OutputGradient& g) {
    return {.dy = g.dy.raw(), .y = g.y ? g.y->raw() : nullptr, .gradient_factor = g.factor};
  }
  std::string key(ConvCall call) const {
    const bool masks = call != ConvCall::fprop && c_.needs_relu_gradient();
    return cat(name_, " ", name_of(call), masks ? " sign " : " ", of(call).adds() ? "adds " : "",
               sizes_of(c_));
  }
  bool has(ConvCall call) const { return products_[static_cast<size_t>(call)] != nullptr; }
  ConvProduct& of(ConvCall call) const { return *products_[static_cast<size_t>(call)]; }

  ConvCase c_;
  const char* name_;
  std::unique_ptr<ConvProduct> products_[std::size(kCalls)];
};

// name: of the implementation that consists of products of this kind.
template <typename Kind>
std::unique_ptr<LinearKernel> made_of(Context& context, const ConvCase& c, const char* name,
                                      std::string& reason) {
  if (!has_async_mma(context, reason)) return nullptr;
  auto kernel = std::make_unique<ProductKernel>(
      c, name, [&](ConvCall call) { return std::make_unique<Kind>(context, c, call); });
  if (!kernel->suffices()) {
    reason = "groups, few positions, strides of a data gradient, or too large for shared memory";
    return nullptr;
  }
  kernel->choose(context);
  return kernel;
}

std::unique_ptr<LinearKernel> make_conv_implicit_gemm(Context& context, const ConvCase& c,
                                                      std::string& reason) {
  if (Tf32Gemm::supports(c, reason)) return made_of<Tf32Gemm>(context, c, "implicit_gemm", reason);
  if (c.dtype == DType::f32 || !supports_products(c, reason)) return nullptr;
  if (!is_matrix_product(c)) return made_of<ImplicitGemm>(context, c, "implicit_gemm", reason);
  reason = "windows of one pixel";
  return nullptr;
}

std::unique_ptr<LinearKernel> make_conv_small_gemm(Context& context, const ConvCase& c,
                                                   std::string& reason) {
  if (!supports_products(c, reason)) return nullptr;
  if (is_matrix_product(c)) return made_of<ImplicitGemm>(context, c, "small_gemm", reason);
  reason = "for windows of one pixel only";
  return nullptr;
}

std::unique_ptr<LinearKernel> make_dense_small_gemm(Context& context, const DenseCase& c,
                                                    std::string& reason) {
  if (!c.transposed) return make_conv_small_gemm(context, conv_case_of(c), reason);
  reason = "transposed weights";
  return nullptr;
}

std::unique_ptr<LinearKernel> make_conv_direct(Context& context, const ConvCase& c,
                                               std::string& reason) {
  if (!supports_products(c, reason)) return nullptr;
  return made_of<DirectConv>(context, c, "direct_conv", reason);
}

// Behind the libraries' kernels, which are faster for large products.
REGISTER_KERNEL(conv_kernels, "implicit_gemm", RunsOn::gpu, 25, make_conv_implicit_gemm);
REGISTER_KERNEL(conv_kernels, "small_gemm", RunsOn::gpu, 24, make_conv_small_gemm);
REGISTER_KERNEL(conv_kernels, "direct_conv", RunsOn::gpu, 23, make_conv_direct);
REGISTER_KERNEL(dense_kernels, "small_gemm", RunsOn::gpu, 5, make_dense_small_gemm);

}  // namespace
}  // namespace crema
