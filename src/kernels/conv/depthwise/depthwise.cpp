// Depthwise convolution on the CPU: loops over channels for windows of any size, for what oneDNN does
// not support: its kernels take half to all of their time.
#include "kernels/conv/depthwise/depthwise.h"

#include <algorithm>
#include <vector>

#include "kernels/pointwise/channel_vector.h"
#include "tensor/on.h"

namespace crema {
namespace {

// A position of `in` under the window of a position of `out` along an axis, and its tap.
struct TapInput {
  int64_t tap, at;
};
using TapTable = std::vector<std::vector<TapInput>>;

// backward: `in` is y's axis and `out` x's, else the other way round.
TapTable taps_of_outputs(const ConvCase& c, int axis, bool backward) {
  const int64_t stride = c.stride[axis], pad = c.pad[axis], dilation = c.dilation[axis];
  const int64_t in = (backward ? c.y : c.x)[axis + 2], out = (backward ? c.x : c.y)[axis + 2];
  TapTable all(static_cast<size_t>(out));
  for (int64_t position = 0; position < out; ++position) {
    for (int64_t tap = 0; tap < c.w[axis + 2]; ++tap) {
      const int64_t from =
          backward ? position + pad - tap * dilation : position * stride - pad + tap * dilation;
      if (backward && from % stride != 0) continue;
      const int64_t at = backward ? from / stride : from;
      if (from >= 0 && at < in) all[static_cast<size_t>(position)].push_back({tap, at});
    }
  }
  return all;
}

constexpr int kMaxTaps = 64;

// The pixels under a window, each with the weights of its tap.
template <typename T>
struct WeightedPixels {
  const T *x[kMaxTaps], *w[kMaxTaps];
  int count = 0;
};

// Sums kVectors vectors of channels from c on.
template <int kVectors, typename T>
void sum_pixels(const WeightedPixels<T>& pixels, int64_t c, const T* bias, bool relu, T slope,
                T* out) {
  using V = Vector<T>;
  V sums[kVectors];
  for (int v = 0; v < kVectors; ++v) sums[v] = bias ? load<V>(bias + c + v * kLanes<T>) : V{};
  for (int i = 0; i < pixels.count; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      sums[v] +=
          load<V>(pixels.x[i] + c + v * kLanes<T>) * load<V>(pixels.w[i] + c + v * kLanes<T>);
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    if (relu) sums[v] = sums[v] > 0 ? sums[v] : sums[v] * slope;
    store(sums[v], out + c + v * kLanes<T>);
  }
}

template <typename T>
void sum_pixels(const WeightedPixels<T>& pixels, int64_t channels, const T* bias, bool relu,
                T slope, T* out) {
  int64_t c = 0;
  for (; c + 4 * kLanes<T> <= channels; c += 4 * kLanes<T>)
    sum_pixels<4>(pixels, c, bias, relu, slope, out);
  for (; c + kLanes<T> <= channels; c += kLanes<T>)
    sum_pixels<1>(pixels, c, bias, relu, slope, out);
  for (; c < channels; ++c) {
    T sum = bias ? bias[c] : T(0);
    for (int i = 0; i < pixels.count; ++i) sum += pixels.x[i][c] * pixels.w[i][c];
    out[c] = relu && sum < 0 ? slope * sum : sum;
  }
}

// sums[c] += the sum over `count` positions of a[c] * b[c], with strides a_step and b_step.
template <typename T>
void add_products(const T* a, int64_t a_step, const T* b, int64_t b_step, int64_t count,
                  int64_t channels, T* sums) {
  using V = Vector<T>;
  const auto add = [&]<int kVectors>(int64_t c) {
    V total[kVectors];
    for (int v = 0; v < kVectors; ++v) total[v] = load<V>(sums + c + v * kLanes<T>);
    for (int64_t i = 0; i < count; ++i) {
      for (int v = 0; v < kVectors; ++v) {
        total[v] += load<V>(a + i * a_step + c + v * kLanes<T>) *
                    load<V>(b + i * b_step + c + v * kLanes<T>);
      }
    }
    for (int v = 0; v < kVectors; ++v) store(total[v], sums + c + v * kLanes<T>);
  };
  int64_t c = 0;
  for (; c + 4 * kLanes<T> <= channels; c += 4 * kLanes<T>) add.template operator()<4>(c);
  for (; c + kLanes<T> <= channels; c += kLanes<T>) add.template operator()<1>(c);
  for (; c < channels; ++c) {
    for (int64_t i = 0; i < count; ++i) sums[c] += a[i * a_step + c] * b[i * b_step + c];
  }
}

class DepthwiseCpu final : public LinearKernel {
 public:
  explicit DepthwiseCpu(const ConvCase& c) : c_(c), channels_(c.x[1]), taps_(c.w.count(2)) {
    for (int axis = 0; axis < 2; ++axis) {
      fprop_[axis] = taps_of_outputs(c, axis, false);
      dgrad_[axis] = taps_of_outputs(c, axis, true);
    }
    // The order of the additions must not depend on the number of threads.
    pieces_ = std::clamp<int64_t>(c.y[0] * c.y[2], 1, 64);
  }

  LinearKernelFeatures features() const override { return {.bias_gradient = true}; }
  size_t workspace() const override {
    const int64_t parts = c_.backward_weights ? pieces_ * (taps_ + 1) : 0;
    return static_cast<size_t>(std::max(taps_, parts) * channels_) * size_of(c_.dtype);
  }

  void forward(Context&, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor& workspace) override {
    on(y, [&]<typename T>() {
      window(fprop_, x.data<T>(), c_.x, w.data<T>(), b ? b.data<T>() : nullptr, c_.relu.on,
             y.data<T>(), c_.y, workspace.data<T>());
    });
  }

  void backward_data(Context&, const OutputGradient& g, const Tensor& w, const Tensor& dx,
                     const Tensor& workspace) override {
    on(dx, [&]<typename T>() {
      window<T>(dgrad_, g.dy.data<T>(), c_.y, w.data<T>(), nullptr, false, dx.data<T>(), c_.x,
                workspace.data<T>());
    });
  }

  void backward_weights(Context&, const Tensor& x, const OutputGradient& g, const Tensor& dw,
                        const Tensor& db, bool accumulate_w, bool accumulate_b,
                        const Tensor& workspace) override {
    on(dw, [&]<typename T>() {
      T* const parts = workspace.data<T>();
      find_parts(x.data<T>(), g.dy.data<T>(), bool(db), parts);
      T *const weights = dw.data<T>(), *const biases = db ? db.data<T>() : nullptr;
#pragma omp parallel for schedule(static)
      for (int64_t tap = 0; tap <= taps_; ++tap) {
        if (tap == taps_ && !biases) continue;
        for (int64_t c = 0; c < channels_; ++c) {
          double sum = 0;
          for (int64_t piece = 0; piece < pieces_; ++piece)
            sum += parts[(piece * (taps_ + 1) + tap) * channels_ + c];
          T& to = tap < taps_ ? weights[c * taps_ + tap] : biases[c];
          to = (tap < taps_ ? accumulate_w : accumulate_b) ? to + static_cast<T>(sum)
                                                           : static_cast<T>(sum);
        }
      }
    });
  }

 private:
  template <typename T>
  void window(const TapTable (&table)[2], const T* in, const Shape& in_shape, const T* w,
              const T* bias, bool relu, T* out, const Shape& out_shape, T* transposed) const {
    for (int64_t c = 0; c < channels_; ++c) {
      for (int64_t tap = 0; tap < taps_; ++tap)
        transposed[tap * channels_ + c] = w[c * taps_ + tap];
    }
    const int64_t height = out_shape[2], width = out_shape[3];
#pragma omp parallel for schedule(static)
    for (int64_t line = 0; line < out_shape[0] * height; ++line) {
      const T* const image = in + line / height * in_shape.count(1);
      for (int64_t column = 0; column < width; ++column) {
        WeightedPixels<T> pixels;
        for (const TapInput& row : table[0][static_cast<size_t>(line % height)]) {
          for (const TapInput& across : table[1][static_cast<size_t>(column)]) {
            pixels.x[pixels.count] = image + (row.at * in_shape[3] + across.at) * channels_;
            pixels.w[pixels.count++] = transposed + (row.tap * c_.w[3] + across.tap) * channels_;
          }
        }
        sum_pixels(pixels, channels_, bias, relu, static_cast<T>(c_.relu.slope),
                   out + (line * width + column) * channels_);
      }
    }
  }

  // For each piece of y's rows: its sums for all taps, then the sums of dy alone.
  template <typename T>
  void find_parts(const T* x, const T* dy, bool biases, T* parts) const {
    const int64_t rows = c_.y[0] * c_.y[2], width = c_.y[3];
    const std::vector<T> ones(static_cast<size_t>(biases ? channels_ : 0), T(1));
#pragma omp parallel for schedule(static)
    for (int64_t piece = 0; piece < pieces_; ++piece) {
      T* const sums = parts + piece * (taps_ + 1) * channels_;
      std::fill(sums, sums + (taps_ + 1) * channels_, T(0));
      for (int64_t line = rows * piece / pieces_; line < rows * (piece + 1) / pieces_; ++line) {
        const T* const image = x + line / c_.y[2] * c_.x.count(1);
        const T* const gradient = dy + line * width * channels_;
        for (const TapInput& row : fprop_[0][static_cast<size_t>(line % c_.y[2])]) {
          for (int64_t s = 0; s < c_.w[3]; ++s) {
            // Positions of y whose window has this tap inside the image.
            const int64_t shift = s * c_.dilation[1] - c_.pad[1], stride = c_.stride[1];
            const int64_t first = shift < 0 ? (-shift + stride - 1) / stride : 0;
            const int64_t room = c_.x[3] - 1 - shift;
            const int64_t end = room < 0 ? 0 : std::min(width, room / stride + 1);
            if (first >= end) continue;
            add_products(gradient + first * channels_, channels_,
                         image + (row.at * c_.x[3] + first * stride + shift) * channels_,
                         stride * channels_, end - first, channels_,
                         sums + (row.tap * c_.w[3] + s) * channels_);
          }
        }
        if (biases)
          add_products(gradient, channels_, ones.data(), 0, width, channels_,
                       sums + taps_ * channels_);
      }
    }
  }

  ConvCase c_;
  int64_t channels_, taps_, pieces_;
  TapTable fprop_[2], dgrad_[2];  // down, across
};

std::unique_ptr<LinearKernel> make_conv_depthwise(Context&, const ConvCase& c,
                                                  std::string& reason) {
  if (!is_depthwise(c, reason)) return nullptr;
  if (c.w.count(2) > kMaxTaps) {
    reason = cat(c.w.count(2), " taps, at most ", kMaxTaps);
    return nullptr;
  }
  constexpr int64_t kMaxPositions = 1 << 16;  // of an axis, as there is a table entry for each
  if (std::max({c.x[2], c.x[3], c.y[2], c.y[3]}) > kMaxPositions) {
    reason = cat("an axis of more than ", kMaxPositions, " elements");
    return nullptr;
  }
  return std::make_unique<DepthwiseCpu>(c);
}

REGISTER_KERNEL(conv_kernels, "depthwise", RunsOn::cpu, 40, make_conv_depthwise);

}  // namespace

bool is_depthwise(const ConvCase& c, std::string& reason) {
  if (c.groups == 1 || c.groups != c.x[1] || c.groups != c.y[1]) {
    reason = cat(c.groups, " groups for ", c.x[1], " channels and ", c.y[1], " outputs");
  } else if (c.order != Order::channels_last || c.x.axes() != 4) {
    reason = "for channels-last images of two axes only";
  } else if (c.x_channels > 0 || c.x.count() == 0 || c.y.count() == 0) {
    reason = "padded channels, or nothing to compute";
  } else {
    return true;
  }
  return false;
}

}  // namespace crema
