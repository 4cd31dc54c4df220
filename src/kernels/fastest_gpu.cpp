// Of a library's kernels and our own products that gather their operands, for each of the three
// calls of a convolution or a fully connected layer the one that was faster on this card: small
// kernels are often ours, which pad no channels, write float32 gradients and take ReLU and bias
// along.
#include <algorithm>

#include "device/memory.h"
#include "kernels/bias.h"
#include "kernels/conv_bodies.h"
#include "kernels/dense.h"
#include "kernels/gather_product.h"
#include "tensor/on.h"

namespace crema {
namespace {

// Not worth timing: with channels enough for its tensor-core kernels, libraries win large products.
constexpr double kLargestOwn = 40e9;
// Ours where nothing is timed.
constexpr double kSmall = 1e9;

double operations(const ConvCase& c) {
  return 2.0 * static_cast<double>(c.y.count()) * static_cast<double>(c.w.count(1));
}

// Backward takes the gradient through the ReLU.
bool masks(const ConvCase& c) { return c.relu && !c.relu_taken; }

class FastestSum final : public WeightedSum {
 public:
  FastestSum(Context& context, std::unique_ptr<WeightedSum> library, const ConvCase& c)
      : library_(std::move(library)),
        c_(c),
        format_(library_->weights_format()),
        forward_(context, c, GatherRole::forward, false),
        data_(context, c, GatherRole::data, masks(c)),
        weights_(context, c, GatherRole::weights, masks(c)) {}

  // False: the library has all calls.
  bool choose(Context& context) {
    Tuning& tuning = context.gpu().tuning;
    const std::string key =
        cat("fastest ", forward_.key(), c_.bias ? " bias" : "", c_.relu ? " relu" : "",
            c_.relu_taken ? " taken" : "", c_.backward_data ? " data" : "",
            c_.backward_weights ? " weights" : "");
    const std::optional<std::string> known = tuning.find(key);
    std::string answer;
    if (known && known->size() == 2) {
      answer = *known;
    } else if (tuning.candidates() <= 1 || free_memory(context) < Trial::bytes(*this)) {
      answer = operations(c_) < kSmall ? "oo" : "ll";
    } else {
      answer = Trial(context, *this).answer();
      tuning.remember(key, answer);
    }
    own_forward_ = c_.forward && answer[0] == 'o';
    own_data_ = c_.backward_data && (answer[1] == 'o' || answer[1] == 'd');
    own_weights_ = c_.backward_weights && (answer[1] == 'o' || answer[1] == 'w');
    takes_relu_ = answer[1] == 'o';
    // Tuned before: what the products remember, or what they take without timing.
    if (own_forward_) forward_.tune(context, {});
    if (own_data_) data_.tune(context, {});
    if (own_weights_) weights_.tune(context, {});
    return own_forward_ || own_data_ || own_weights_;
  }

  std::unique_ptr<WeightedSum> library() { return std::move(library_); }

  Format weights_format() const override { return format_; }
  size_t workspace() const override {
    const bool all_own = own_forward_ == c_.forward && own_data_ == c_.backward_data &&
                         own_weights_ == c_.backward_weights;
    return all_own ? 0 : library_->workspace();
  }
  bool takes_relu() const override { return takes_relu_; }

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor& workspace) override {
    if (!own_forward_) return library_->forward(context, x, w, b, y, workspace);
    GatherTensors t;
    t.x = x.raw(), t.w = w.raw(), t.b = b.raw(), t.out = y.raw();
    forward_.run(context, t);
  }

  void backward_data(Context& context, const OutputGradient& g, const Tensor& w, const Tensor& dx,
                     const Tensor& workspace) override {
    if (!own_data_) return library_->backward_data(context, g, w, dx, workspace);
    GatherTensors t;
    t.dy = g.dy.raw(), t.w = w.raw(), t.out = dx.raw();
    if (g.y) t.y = g.y->raw();
    data_.run(context, t);
  }

  void backward_weights(Context& context, const Tensor& x, const OutputGradient& g,
                        const Tensor& dw, const Tensor& db, bool accumulate_w, bool accumulate_b,
                        const Tensor& workspace) override {
    if (!own_weights_) {
      return library_->backward_weights(context, x, g, dw, db, accumulate_w, accumulate_b,
                                        workspace);
    }
    GatherTensors t;
    t.x = x.raw(), t.dy = g.dy.raw(), t.out = dw.raw();
    if (g.y) t.y = g.y->raw();
    t.db = db.data<float>();
    t.accumulate_w = accumulate_w, t.accumulate_b = accumulate_b;
    weights_.run(context, t);
  }

 private:
  // Tensors of the case, to time calls on.
  class Trial {
   public:
    Trial(Context& context, FastestSum& sum)
        : context_(context),
          sum_(sum),
          x_(context, sum.c_.x, sum.c_.dtype, {Order::channels_last, nullptr, sum.c_.x_channels}),
          w_(context, sum.c_.w, sum.c_.dtype, sum.format_),
          b_(context, Shape{sum.c_.w[0]}, sum.c_.dtype),
          y_(context, sum.c_.y, sum.c_.dtype, Format::channels_last()),
          dy_(context, sum.c_.y, sum.c_.dtype, Format::channels_last()),
          dw_(context, sum.c_.w, DType::f32, sum.format_),
          db_(context, Shape{sum.c_.w[0]}, DType::f32),
          workspace_(context, Shape{static_cast<int64_t>(sum.workspace())}, DType::u8) {
      // Small numbers that are not zero: see Tuning::scratch.
      for (const Tensor* tensor : {&x_, &w_, &b_, &y_, &dy_}) {
        check_cuda(cudaMemsetAsync(tensor->raw(), 0x23, tensor->bytes(), context.gpu().stream),
                   "filling memory");
      }
    }

    static size_t bytes(const FastestSum& sum) {
      const ConvCase& c = sum.c_;
      const auto count = static_cast<size_t>(c.x.count() / c.x[1] * std::max(c.x[1], c.x_channels) +
                                             2 * c.y.count() + 4 * c.w.count());
      return 2 * count + sum.workspace() + (size_t{16} << 20);
    }

    // Two letters. Forward: l(ibrary) or o(wn). Backward: l, or o for both with ReLU and bias taken
    // along, or d or w for the gradient of the data or weights alone.
    std::string answer() {
      const ConvCase& c = sum_.c_;
      std::string answer = "ll";
      if (c.forward && own_forward() < library_forward()) answer[0] = 'o';
      if (!c.backward_data && !c.backward_weights) return answer;
      const double relu_and_bias = c.bias || masks(c) ? time([&] { separate(); }) : 0;
      const double data = c.backward_data ? library_data() : 0;
      const double weights = c.backward_weights ? library_weights() : 0;
      const double own_data = c.backward_data ? own_data_gradient() : 0;
      const double own_weights = c.backward_weights ? own_weights_gradient() : 0;
      double best = data + weights + relu_and_bias;
      const auto offer = [&](double seconds, char letter) {
        if (seconds >= best) return;
        best = seconds;
        answer[1] = letter;
      };
      offer(own_data + own_weights, 'o');
      if (c.backward_data) offer(own_data + weights + relu_and_bias, 'd');
      if (c.backward_weights) offer(data + own_weights + relu_and_bias, 'w');
      return answer;
    }

   private:
    double time(const std::function<void()>& work) {
      return context_.gpu().tuning.time_repeated(context_, work);
    }
    double library_forward() {
      return time([&] { sum_.library_->forward(context_, x_, w_, bias(), y_, workspace_); });
    }
    double library_data() {
      return time([&] { sum_.library_->backward_data(context_, dy_, w_, x_, workspace_); });
    }
    double library_weights() {
      return time([&] {
        sum_.library_->backward_weights(context_, x_, dy_, dw_, Tensor(), false, false, workspace_);
      });
    }
    double own_forward() {
      GatherTensors t;
      t.x = x_.raw(), t.w = w_.raw(), t.b = bias().raw(), t.out = y_.raw();
      sum_.forward_.tune(context_, t);
      return time([&] { sum_.forward_.run(context_, t); });
    }
    double own_data_gradient() {
      GatherTensors t;
      t.dy = dy_.raw(), t.y = sign(), t.w = w_.raw(), t.out = x_.raw();
      sum_.data_.tune(context_, t);
      return time([&] { sum_.data_.run(context_, t); });
    }
    double own_weights_gradient() {
      GatherTensors t;
      t.x = x_.raw(), t.dy = dy_.raw(), t.y = sign(), t.out = dw_.raw();
      if (sum_.c_.bias) t.db = db_.data<float>();
      sum_.weights_.tune(context_, t);
      return time([&] { sum_.weights_.run(context_, t); });
    }
    void separate() {
      const ConvCase& c = sum_.c_;
      on_real(dy_, [&]<typename T>() {
        relu_and_bias_gradient(context_, c.y.count() / c.y[1], c.y[1], 1,
                               masks(c) ? y_.data<T>() : nullptr, 0.f, dy_.data<T>(),
                               c.bias ? db_.data<Compute<T>>() : nullptr, false);
      });
    }
    Tensor bias() const { return sum_.c_.bias ? b_ : Tensor(); }
    const void* sign() const { return masks(sum_.c_) ? y_.raw() : nullptr; }

    Context& context_;
    FastestSum& sum_;
    Tensor x_, w_, b_, y_, dy_, dw_, db_, workspace_;
  };

  std::unique_ptr<WeightedSum> library_;
  ConvCase c_;
  Format format_;
  GatherProduct forward_, data_, weights_;
  bool own_forward_ = false, own_data_ = false, own_weights_ = false, takes_relu_ = false;
};

// The winner, or the library's kernel alone.
template <typename Make>
std::unique_ptr<WeightedSum> fastest(Context& context, const ConvCase& c, std::string& reason,
                                     const Make& make_library) {
  if (context.device() != Device::gpu) {
    reason = "it needs a GPU";
    return nullptr;
  }
  if (!GatherProduct::serves(c, reason)) return nullptr;
  int major = 0;
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, context.ordinal()),
             "asking for the compute capability");
  if (major < 8) {
    reason = "compute capability below 8.0";
    return nullptr;
  }
  if (operations(c) > kLargestOwn && c.x_channels == 0 && c.groups == 1) {
    reason = "a large product of many channels";
    return nullptr;
  }
  std::unique_ptr<WeightedSum> library = make_library();
  if (!library) return nullptr;
  auto sum = std::make_unique<FastestSum>(context, std::move(library), c);
  if (!sum->choose(context)) return sum->library();
  return sum;
}

}  // namespace

std::unique_ptr<WeightedSum> make_conv_fastest(Context& context, const ConvCase& c,
                                               std::string& reason) {
  return fastest(context, c, reason, [&] { return make_conv_cudnn(context, c, reason); });
}

std::unique_ptr<WeightedSum> make_dense_fastest(Context& context, const DenseCase& c,
                                                std::string& reason) {
  if (c.transposed) {
    reason = "transposed weights";
    return nullptr;
  }
  // A convolution over images of one place.
  ConvCase one;
  one.x = {c.rows, c.inputs, 1};
  one.w = {c.outputs, c.inputs, 1};
  one.y = {c.rows, c.outputs, 1};
  one.stride = one.dilation = {1};
  one.pad = {0};
  one.bias = c.bias;
  one.relu = c.relu.on;
  one.relu_slope = c.relu.slope;
  one.order = Order::channels_last;
  one.backward_data = c.backward_data;
  one.backward_weights = c.backward_weights;
  one.dtype = c.dtype;
  one.precision = c.precision;
  return fastest(context, one, reason, [&] { return make_dense_cublas(context, c, reason); });
}

}  // namespace crema
