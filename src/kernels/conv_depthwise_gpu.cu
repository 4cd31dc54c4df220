// Depthwise convolution on the GPU, 3x3 and 5x5 with stride 1 (any dilation) and 2, where
// conv_depthwise_strips_gpu.cpp does not serve. Limits: reading x (or dy) and writing y (or dx)
// once; a place costs 9 or 25 multiply-adds, half of what the card can do in that time at most.
// conv_depthwise_weights_gpu.cu has the gradient of the weights.
#include <algorithm>

#include "device/launch.h"
#include "kernels/bias.h"
#include "kernels/conv_depthwise.cuh"
#include "kernels/conv_depthwise.h"
#include "tensor/on.h"

namespace crema {
namespace {

// The taps of the block's channels as floats, [tap][channel]; backwards when mirrored.
template <typename T, int kTaps>
__device__ void load_weights(const DepthwiseNumbers& n, const T* w, bool mirrored, float* weights) {
  constexpr int kChannels = kDepthwiseLanes<T> * kDepthwisePack;
  const int first = static_cast<int>(blockIdx.x) * n.lanes * kDepthwisePack;
  const int count = min(n.lanes * kDepthwisePack, n.channels - first);
  for (int i = static_cast<int>(threadIdx.x); i < count * kTaps;
       i += static_cast<int>(blockDim.x)) {
    const int tap = i % kTaps;
    weights[(mirrored ? kTaps - 1 - tap : tap) * kChannels + i / kTaps] =
        static_cast<float>(w[static_cast<int64_t>(first) * kTaps + i]);
  }
}
template <typename T>
CREMA_HD constexpr int weights_bytes(int taps) {
  return taps * kDepthwiseLanes<T> * kDepthwisePack * static_cast<int>(sizeof(float));
}

__device__ inline void add_product(float (&sum)[kDepthwisePack], const float (&x)[kDepthwisePack],
                                   const float4& w) {
  sum[0] += x[0] * w.x, sum[1] += x[1] * w.y, sum[2] += x[2] * w.z, sum[3] += x[3] * w.w;
}

template <typename T>
__device__ void store_place(T* to, const float (&sums)[kDepthwisePack], bool relu, float slope) {
  Pack<T, kDepthwisePack> out;
#pragma unroll
  for (int k = 0; k < kDepthwisePack; ++k)
    out.v[k] = T(relu && sums[k] < 0 ? slope * sums[k] : sums[k]);
  *reinterpret_cast<Pack<T, kDepthwisePack>*>(to) = out;
}

// y, or with mirrored weights dx of stride 1.
template <typename T, int kKernel, int kStride, int kHeight, int kWidth>
__global__ void __launch_bounds__(kDepthwiseThreads<T>, 2)
    depthwise_window(DepthwiseNumbers n, const T* x, const T* w, const T* bias, DepthwiseEnd end,
                     bool mirrored, T* y) {
  constexpr int kTaps = kKernel * kKernel, kIn = (kWidth - 1) * kStride + kKernel;
  constexpr int kChannels = kDepthwiseLanes<T> * kDepthwisePack;
  extern __shared__ __align__(128) unsigned char memory[];
  float* const weights = reinterpret_cast<float*>(memory);
  load_weights<T, kTaps>(n, w, mirrored, weights);
  const DepthwiseTile tile(n);
  const int channel = (static_cast<int>(blockIdx.x) * n.lanes + tile.lane) * kDepthwisePack;
  const bool busy = tile.inside && channel < n.channels;
  float first[kDepthwisePack] = {};
  if (busy && bias) load_place<T>(reinterpret_cast<const unsigned char*>(bias + channel), first);
  const int place = tile.place_in<T>(n.in);

  const auto load = [&](const DepthwisePatch& patch, int stage) {
    load_region(n, n.in, x, patch,
                shared_address(memory) + weights_bytes<T>(kTaps) + stage * n.in.bytes);
  };
  const auto compute = [&](const DepthwisePatch& patch, int stage) {
    const DepthwiseSheet sheet(n, patch.first_sheet + tile.sheet);
    const int row = sheet.row + (patch.row + tile.row) * n.dilation;
    const int column = sheet.column + (patch.column + tile.column) * n.dilation;
    if (!busy || patch.first_sheet + tile.sheet >= n.sheets || row >= n.out_height ||
        column >= n.out_width)
      return;
    const unsigned char* from = memory + weights_bytes<T>(kTaps) + stage * n.in.bytes + place;
    float sums[kHeight][kWidth][kDepthwisePack];
#pragma unroll
    for (int i = 0; i < kHeight * kWidth * kDepthwisePack; ++i)
      sums[i / kDepthwisePack / kWidth][i / kDepthwisePack % kWidth][i % kDepthwisePack] =
          first[i % kDepthwisePack];
#pragma unroll
    for (int r = 0; r < (kHeight - 1) * kStride + kKernel; ++r) {
      float in[kIn][kDepthwisePack];
#pragma unroll
      for (int j = 0; j < kIn; ++j) load_place<T>(from + j * kDepthwiseLine, in[j]);
      from += n.in.columns * kDepthwiseLine;
#pragma unroll
      for (int i = 0; i < kHeight; ++i) {
        if (r < i * kStride || r >= i * kStride + kKernel) continue;
#pragma unroll
        for (int s = 0; s < kKernel; ++s) {
          const float4 weight = *reinterpret_cast<const float4*>(
              weights + ((r - i * kStride) * kKernel + s) * kChannels + tile.lane * kDepthwisePack);
#pragma unroll
          for (int j = 0; j < kWidth; ++j) add_product(sums[i][j], in[j * kStride + s], weight);
        }
      }
    }
    T* const to =
        y +
        ((static_cast<int64_t>(sheet.image) * n.out_height + row) * n.out_width + column) *
            n.channels +
        channel;
#pragma unroll
    for (int i = 0; i < kHeight; ++i) {
#pragma unroll
      for (int j = 0; j < kWidth; ++j) {
        const int down = i * n.dilation, across = j * n.dilation;
        if (row + down < n.out_height && column + across < n.out_width) {
          store_place(to + (static_cast<int64_t>(down) * n.out_width + across) * n.channels,
                      sums[i][j], end.relu, end.slope);
        }
      }
    }
  };
  over_patches(n, load, compute);
}

// dx of stride 2, in tiles of 4 x 4 that begin at even places of the padded image: which taps meet
// which places of dy is then the same for all.
constexpr int kSpread = 4;

template <typename T, int kKernel>
__global__ void __launch_bounds__(kDepthwiseThreads<T>, 2)
    depthwise_spread(DepthwiseNumbers n, const T* dy, const T* w, int top, int left, T* dx) {
  constexpr int kTaps = kKernel * kKernel, kBefore = (kKernel - 1) / 2, kIn = kBefore + 2;
  constexpr int kChannels = kDepthwiseLanes<T> * kDepthwisePack;
  extern __shared__ __align__(128) unsigned char memory[];
  float* const weights = reinterpret_cast<float*>(memory);
  load_weights<T, kTaps>(n, w, false, weights);
  const DepthwiseTile tile(n);
  const int channel = (static_cast<int>(blockIdx.x) * n.lanes + tile.lane) * kDepthwisePack;
  const bool busy = tile.inside && channel < n.channels;
  const int place =
      ((tile.sheet * n.in.rows + tile.row / 2) * n.in.columns + tile.column / 2) * kDepthwiseLine +
      tile.lane * kDepthwisePack * static_cast<int>(sizeof(T));

  const auto load = [&](const DepthwisePatch& patch, int stage) {
    DepthwisePatch half = patch;  // dy has half as many places
    half.row /= 2, half.column /= 2;
    load_region(n, n.in, dy, half,
                shared_address(memory) + weights_bytes<T>(kTaps) + stage * n.in.bytes);
  };
  const auto compute = [&](const DepthwisePatch& patch, int stage) {
    const int image = patch.first_sheet + tile.sheet;
    const int first_row = patch.row + tile.row - top,
              first_column = patch.column + tile.column - left;
    if (!busy || image >= n.sheets || first_row >= n.out_height || first_column >= n.out_width)
      return;
    const unsigned char* from = memory + weights_bytes<T>(kTaps) + stage * n.in.bytes + place;
    float sums[kSpread][kSpread][kDepthwisePack] = {};
#pragma unroll
    for (int r = 0; r < kIn; ++r) {
      float in[kIn][kDepthwisePack];
#pragma unroll
      for (int j = 0; j < kIn; ++j) load_place<T>(from + j * kDepthwiseLine, in[j]);
      from += n.in.columns * kDepthwiseLine;
#pragma unroll
      for (int a = 0; a < kSpread; ++a) {
        const int kr = a - 2 * (r - kBefore);  // the tap through which this row meets that of dy
        if (kr < 0 || kr >= kKernel) continue;
#pragma unroll
        for (int j = 0; j < kIn; ++j) {
#pragma unroll
          for (int b = 0; b < kSpread; ++b) {
            const int ks = b - 2 * (j - kBefore);
            if (ks < 0 || ks >= kKernel) continue;
            const float4 weight = *reinterpret_cast<const float4*>(
                weights + (kr * kKernel + ks) * kChannels + tile.lane * kDepthwisePack);
            add_product(sums[a][b], in[j], weight);
          }
        }
      }
    }
    T* const to =
        dx + static_cast<int64_t>(image) * n.out_height * n.out_width * n.channels + channel;
#pragma unroll
    for (int a = 0; a < kSpread; ++a) {
#pragma unroll
      for (int b = 0; b < kSpread; ++b) {
        const int row = first_row + a, column = first_column + b;
        if (row >= 0 && column >= 0 && row < n.out_height && column < n.out_width) {
          store_place(to + (static_cast<int64_t>(row) * n.out_width + column) * n.channels,
                      sums[a][b], false, 0.f);
        }
      }
    }
  };
  over_patches(n, load, compute);
}

// Places of a tile of depthwise_window: as many as the registers hold.
constexpr int tile_height(int64_t kernel, int64_t stride) {
  return stride == 1 && kernel == 3 ? 4 : 2;
}
constexpr int tile_width(int64_t stride) { return stride == 1 ? 4 : 2; }

DepthwiseNumbers forward_numbers(const ConvCase& c) {
  return depthwise_numbers(c.x, c.y, c.dtype,
                           {c.w[2], c.stride[0], c.dilation[0], c.pad[0], c.pad[1],
                            tile_height(c.w[2], c.stride[0]), tile_width(c.stride[0])});
}

DepthwiseNumbers data_numbers(const ConvCase& c) {
  if (c.stride[0] == 1) {
    const int64_t reach = c.dilation[0] * (c.w[2] - 1);
    return depthwise_numbers(c.y, c.x, c.dtype,
                             {c.w[2], 1, c.dilation[0], reach - c.pad[0], reach - c.pad[1],
                              tile_height(c.w[2], 1), tile_width(1)});
  }
  // The tiles lie on the padded image, which has two places for each of dy.
  Shape padded = c.x;
  padded[2] += c.pad[0];
  padded[3] += c.pad[1];
  const int64_t before = (c.w[2] - 1) / 2;
  DepthwiseNumbers n = depthwise_numbers(c.y, padded, c.dtype,
                                         {before + 1, 1, 1, before, before, kSpread, kSpread, 2});
  n.out_height = static_cast<int>(c.x[2]), n.out_width = static_cast<int>(c.x[3]);
  return n;
}

class DepthwiseGpu final : public WeightedSum {
 public:
  explicit DepthwiseGpu(const ConvCase& c)
      : c_(c),
        forward_(forward_numbers(c)),
        data_(data_numbers(c)),
        weights_(depthwise_weights_numbers(c)) {}

  Format weights_format() const override { return Format::channels_last(); }
  size_t workspace() const override {
    if (!c_.backward_weights) return 0;
    return static_cast<size_t>(depthwise_parts(weights_, c_.w[2])) * sizeof(float);
  }
  // Of a case without one: then the bias's gradient comes with that of the weights.
  bool takes_relu() const override { return !c_.relu; }

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor&) override {
    window(context, forward_, x, w, b, {c_.relu, c_.relu_slope}, c_.stride[0], false, y);
  }

  void backward_data(Context& context, const OutputGradient& g, const Tensor& w, const Tensor& dx,
                     const Tensor&) override {
    if (c_.stride[0] == 1) return window(context, data_, g.dy, w, {}, {}, 1, true, dx);
    on_storage(dx, [&]<typename T>() {
      const auto run = [&](auto* kernel) {
        start<T>(context, kernel, data_, data_, g.dy.data<T>(), w.data<T>(),
                 static_cast<int>(c_.pad[0]), static_cast<int>(c_.pad[1]), dx.data<T>());
      };
      c_.w[2] == 3 ? run(depthwise_spread<T, 3>) : run(depthwise_spread<T, 5>);
    });
  }

  void backward_weights(Context& context, const Tensor& x, const OutputGradient& g,
                        const Tensor& dw, const Tensor& db, bool accumulate_w, bool accumulate_b,
                        const Tensor& workspace) override {
    start_depthwise_weights(context.gpu(), weights_, c_.dtype, static_cast<int>(c_.w[2]),
                            static_cast<int>(c_.stride[0]),
                            {x.raw(), g.dy.raw(), dw.data<float>(), db ? db.data<float>() : nullptr,
                             workspace.data<float>(), accumulate_w, accumulate_b});
  }

 private:
  template <typename Body>
  static void on_storage(const Tensor& tensor, const Body& body) {
    switch (tensor.dtype()) {
      case DType::f16:
        return body.template operator()<Half>();
      case DType::bf16:
        return body.template operator()<BFloat16>();
      default:
        return body.template operator()<float>();
    }
  }

  template <typename T, typename Kernel, typename... Arguments>
  void start(Context& context, Kernel* kernel, const DepthwiseNumbers& n,
             Arguments... arguments) const {
    const int bytes = weights_bytes<T>(static_cast<int>(c_.w.count(2))) + 2 * n.in.bytes;
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
               "reserving shared memory");
    launch(context.gpu(), kernel,
           {n.grid(kDepthwiseBlocks), n.threads(), static_cast<size_t>(bytes)}, arguments...);
  }

  void window(Context& context, const DepthwiseNumbers& n, const Tensor& x, const Tensor& w,
              const Tensor& b, const DepthwiseEnd& end, int64_t stride, bool mirrored,
              const Tensor& y) const {
    on_storage(y, [&]<typename T>() {
      const auto run = [&](auto* kernel) {
        start<T>(context, kernel, n, n, x.data<T>(), w.data<T>(), b ? b.data<T>() : nullptr, end,
                 mirrored, y.data<T>());
      };
      const auto of_size = [&]<int kKernel>() {
        stride == 1 ? run(depthwise_window<T, kKernel, 1, tile_height(kKernel, 1), tile_width(1)>)
                    : run(depthwise_window<T, kKernel, 2, tile_height(kKernel, 2), tile_width(2)>);
      };
      c_.w[2] == 3 ? of_size.template operator()<3>() : of_size.template operator()<5>();
    });
  }

  ConvCase c_;
  DepthwiseNumbers forward_, data_, weights_;
};

}  // namespace

std::unique_ptr<WeightedSum> make_depthwise_gpu(Context&, const ConvCase& c, std::string& reason) {
  const int64_t chunk = 16 / static_cast<int64_t>(size_of(c.dtype));
  if (c.w[2] != c.w[3] || (c.w[2] != 3 && c.w[2] != 5)) {
    reason = "for kernels of 3x3 and 5x5 only";
  } else if (c.stride[0] != c.stride[1] || c.dilation[0] != c.dilation[1]) {
    reason = "for the same stride and dilation along both axes only";
  } else if (c.stride[0] > 2 || (c.stride[0] == 2 && c.dilation[0] > 1)) {
    reason = "for stride 1, and stride 2 without dilation, only";
  } else if (c.dtype == DType::f64) {
    reason = "no float64";
  } else if (c.x[1] % chunk != 0) {
    reason = cat("the channels are no multiple of ", chunk);
  } else if (std::max(c.x.count(), c.y.count()) >= int64_t{1} << 31) {
    reason = "too many elements";
  } else if (serves_strips(c)) {
    return make_depthwise_strips(c);
  } else {
    return std::make_unique<DepthwiseGpu>(c);
  }
  return nullptr;
}

}  // namespace crema
