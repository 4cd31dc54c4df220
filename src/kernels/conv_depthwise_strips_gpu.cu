// Depthwise convolution of 16-bit images with stride 1: forward, and the gradient of the data,
// which is the same with mirrored weights. See conv_depthwise_strips.cuh.
#include "device/launch.h"
#include "kernels/conv_depthwise.h"
#include "kernels/conv_depthwise_strips.cuh"

namespace crema {
namespace {

constexpr int kStages = 5;
constexpr int kBlocks = 4;  // on a multiprocessor

struct Window {
  const void *x, *w, *bias;
  DepthwiseEnd end;
  bool mirrored;
  void* y;
};

template <typename T, int kKernel>
__global__ void __launch_bounds__(kStripThreads, kBlocks)
    depthwise_strips(StripNumbers n, const T* x, const T* w, const T* bias, DepthwiseEnd end,
                     bool mirrored, T* y) {
  constexpr int kTaps = kKernel * kKernel, kPad = kKernel / 2;
  __shared__ __align__(16) unsigned char weights_memory[kTaps * kStripPlace];
  T* const weights = reinterpret_cast<T*>(weights_memory);
  extern __shared__ __align__(128) unsigned char memory[];
  load_strip_weights<T, kTaps>(n, w, mirrored, weights);
  const StripWindow<T, kKernel> window(weights);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int channel =
      static_cast<int>(blockIdx.x) * kStripChannels + static_cast<int>(threadIdx.x) % 4 * 8;
  Pack<T, 8> biases{};
  if (bias && channel < n.channels) biases = *reinterpret_cast<const Pack<T, 8>*>(bias + channel);
  const int first = static_cast<int>(blockIdx.y) * n.steps * n.stage_rows;
  const int left = static_cast<int>(blockIdx.z) * n.band;
  const int row_bytes = n.pitch * kStripPlace, all_bytes = n.image_bytes(kStages);

  const auto load = [&](int stage, int slot) {
    load_stream<1>(n, n.by_columns, x, first - kPad + stage * n.stage_rows,
                   stage < n.steps ? n.stage_rows : 2 * kPad, left - kPad,
                   shared_address(memory) + slot * n.stage_rows * row_bytes, row_bytes);
  };
  const auto compute = [&](int step, int slot) {
    for (int task = warp; task < n.strips * n.stage_rows / kStripRows; task += kStripThreads / 32) {
      int strip;
      const int row = n.by_strips.split(task, strip) * kStripRows;
      const int upper = (slot * n.stage_rows + row) * row_bytes;
      const int lower = upper + kStripRows * row_bytes;
      const unsigned char* const from = memory + strip * 8 * kStripPlace;
      float sums[kStripRows / 2][4][4];
#pragma unroll
      for (int i = 0; i < 32; ++i)
        sums[i / 16][i / 4 % 4][i % 4] = static_cast<float>(biases.v[i / 4 % 4 * 2 + i % 2]);
      window.add(from + upper, from + (lower < all_bytes ? lower : 0), row_bytes, sums);
      store_strip(n, first + step * n.stage_rows + row, left, strip, sums, end, y);
    }
  };
  over_stream<kStages>(n.steps, load, compute);
}

template <typename T, int kKernel>
void start(const Gpu& gpu, const StripNumbers& n, const Window& s) {
  const auto kernel = depthwise_strips<T, kKernel>;
  const int bytes = n.image_bytes(kStages) + n.pitch * kStripPlace;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "reserving shared memory");
  launch(gpu, kernel, {n.blocks, kStripThreads, static_cast<size_t>(bytes)}, n,
         static_cast<const T*>(s.x), static_cast<const T*>(s.w), static_cast<const T*>(s.bias),
         s.end, s.mirrored, static_cast<T*>(s.y));
}

class DepthwiseStrips final : public WeightedSum {
 public:
  explicit DepthwiseStrips(const ConvCase& c)
      : c_(c),
        kernel_(static_cast<int>(c.w[2])),
        window_(c.x, c.x, kernel_, kernel_ / 2, kStripRows, kBlocks * kMultiprocessors),
        gradients_(c.x, c.x, kernel_, kernel_ / 2, kStripRows, 3 * kMultiprocessors) {}

  Format weights_format() const override { return Format::channels_last(); }
  size_t workspace() const override {
    if (!c_.backward_weights) return 0;
    return static_cast<size_t>(gradients_.parts() * (kernel_ * kernel_ + 1) * c_.x[1]) *
           sizeof(float);
  }
  // Of a case without one: then the bias's gradient comes with that of the weights.
  bool takes_relu() const override { return !c_.relu; }
  bool joins_gradients() const override { return true; }

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor&) override {
    window(context,
           {x.raw(), w.raw(), b ? b.raw() : nullptr, {c_.relu, c_.relu_slope}, false, y.raw()});
  }

  void backward_data(Context& context, const OutputGradient& g, const Tensor& w, const Tensor& dx,
                     const Tensor&) override {
    window(context, {g.dy.raw(), w.raw(), nullptr, {}, true, dx.raw()});
  }

  void backward_weights(Context& context, const Tensor& x, const OutputGradient& g,
                        const Tensor& dw, const Tensor& db, bool accumulate_w, bool accumulate_b,
                        const Tensor& workspace) override {
    backward_both(context, x, g, Tensor(), Tensor(), dw, db, accumulate_w, accumulate_b, workspace);
  }

  void backward_both(Context& context, const Tensor& x, const OutputGradient& g, const Tensor& w,
                     const Tensor& dx, const Tensor& dw, const Tensor& db, bool accumulate_w,
                     bool accumulate_b, const Tensor& workspace) override {
    float* const parts = workspace.data<float>();
    start_strip_gradients(
        context.gpu(), gradients_, c_.dtype, kernel_,
        {x.raw(), g.dy.raw(), dx ? w.raw() : nullptr, dx ? dx.raw() : nullptr, parts, bool(db)});
    add_depthwise_parts(context.gpu(), static_cast<int>(c_.x[1]), kernel_ * kernel_,
                        gradients_.parts(),
                        {x.raw(), g.dy.raw(), dw.data<float>(), db ? db.data<float>() : nullptr,
                         parts, accumulate_w, accumulate_b});
  }

 private:
  void window(Context& context, const Window& s) const {
    const auto of_type = [&]<typename T>() {
      kernel_ == 3 ? start<T, 3>(context.gpu(), window_, s)
                   : start<T, 5>(context.gpu(), window_, s);
    };
    c_.dtype == DType::f16 ? of_type.template operator()<Half>()
                           : of_type.template operator()<BFloat16>();
  }

  ConvCase c_;
  int kernel_;
  StripNumbers window_, gradients_;
};

}  // namespace

std::unique_ptr<WeightedSum> make_depthwise_strips(const ConvCase& c) {
  return std::make_unique<DepthwiseStrips>(c);
}

}  // namespace crema
