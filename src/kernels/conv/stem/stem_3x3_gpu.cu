// Convolution of a net's first layer with a 3x3 kernel, on tensor cores (stem_3x3.cuh). Bound by
// memory: reading x once and writing y once, or reading dy once, and y for the sign of a ReLU.
#include <algorithm>

#include "kernels/conv/stem/stem.cuh"
#include "kernels/conv/stem/stem_3x3.cuh"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr int kMaxThreads = 256, kStages = 4;
constexpr int kPositionsBytes = kStem3x3Positions * kStem3x3Outputs * 2;  // of dy or y

// Shared memory per warp and stage of the weight gradient; a multiple of 128.
CREMA_HD constexpr int wgrad_stage(int stride, bool sign) {
  const int pixels = stride == 1 ? Stem3x3Tile<1>::kBytes : Stem3x3Tile<2>::kBytes;
  return (pixels + 127) / 128 * 128 + (sign ? 2 : 1) * kPositionsBytes;
}

// The fourth pixel of each row of four is not part of the window: it is replaced by ones, which the
// first row weights with the bias. The columns of the products are the outputs, permuted so that
// each lane gets eight contiguous ones.
template <typename T, int kStride, bool kRelu>
__global__ void __launch_bounds__(kMaxThreads, 2)
    stem_3x3_fprop(Stem3x3Params n, const T* x, const T* w, const T* bias, T* y) {
#if __CUDA_ARCH__ >= 800  // older cards lack these instructions: make_conv_stem_3x3 declines them
  using Tile = Stem3x3Tile<kStride>;
  extern __shared__ __align__(128) unsigned char memory[];
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, q = lane % 4;
  const int first_output = static_cast<int>(blockIdx.y) * kStem3x3Outputs;

  uint32_t b[kStem3x3Kernel][8][2];
#pragma unroll
  for (int row = 0; row < kStem3x3Kernel; ++row) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int output = first_output + j / 4 * 32 + g / 2 * 8 + j % 4 * 2 + g % 2;
      const T* const from =
          w + (output * kStem3x3Kernel + row) * kStem3x3Kernel * n.channels + q % 2 * 2;
      const auto pair = [&](int pixel) {
        return *reinterpret_cast<const uint32_t*>(from + pixel * n.channels);
      };
      b[row][j][0] = pair(q / 2);
      b[row][j][1] = q < 2 ? pair(2) : row == 0 && q == 2 && bias ? bias[output].bits : 0;
    }
  }

  const uint32_t own =
      shared_address(memory) + static_cast<int>(threadIdx.x) / 32 * kStages * Tile::kBytes;
  const auto load = [&](int tile, int slot) {
    load_pixels<kStride>(n, x, tile, own + slot * Tile::kBytes);
  };
  // The start of this lane's matrix row.
  const int entry = (lane % 16 + lane / 16 * Tile::kThird) * 16;
  const auto compute = [&](int tile, int slot) {
    const uint32_t from = own + slot * Tile::kBytes + entry;
    float sums[8][4] = {};
#pragma unroll
    for (int row = 0; row < kStem3x3Kernel; ++row) {
      uint32_t a[4];
      load_matrices(a, from + row * Tile::kRow);
      if (q >= 2) a[2] = a[3] = T(1.f).bits;
#pragma unroll
      for (int j = 0; j < 8; ++j) multiply_add<T>(sums[j], a, b[row][j][0], b[row][j][1]);
    }
    int column;
    const int row = n.by_row.split(tile, column);
    column = column * kStem3x3Positions + g;
    const int64_t position = row * n.out_width + column;
    T* const out = y + position * n.outputs + first_output + q * 8;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint4 words[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        uint32_t v[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float(&sum)[4] = sums[i * 4 + j];
          v[j] = rounded_pair<T, kRelu>(sum[half * 2], sum[half * 2 + 1]);
        }
        words[i] = make_uint4(v[0], v[1], v[2], v[3]);
      }
      if (column + half * 8 < n.out_width) {
        uint4* const to = reinterpret_cast<uint4*>(out + half * 8 * n.outputs);
        to[0] = words[0], to[4] = words[1];
      }
    }
  };
  for_tiles<kStages>(n.tiles, load, compute);
#endif
}

template <typename T, int kStride, bool kSign>
__global__ void __launch_bounds__(kMaxThreads, 1)
    stem_3x3_wgrad(Stem3x3Params n, const T* x, const T* dy, const T* sign, float* parts) {
#if __CUDA_ARCH__ >= 800
  using Tile = Stem3x3Tile<kStride>;
  constexpr int kStage = wgrad_stage(kStride, kSign);
  constexpr int kPixelsAt = (kSign ? 2 : 1) * kPositionsBytes;
  extern __shared__ __align__(128) unsigned char memory[];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int first_output = static_cast<int>(blockIdx.y) * kStem3x3Outputs;
  const uint32_t own = shared_address(memory) + warp * kStages * kStage;

  const auto load = [&](int tile, int slot) {
    const uint32_t to = own + slot * kStage;
    load_positions(n, dy, first_output, tile, to);
    if constexpr (kSign) load_positions(n, sign, first_output, tile, to + kPositionsBytes);
    load_pixels<kStride>(n, x, tile, to + kPixelsAt);
  };
  // The starts of this lane's matrix rows: positions, at 16 outputs each; entries of pixels.
  uint32_t positions[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    positions[i] =
        (lane % 8 + lane / 16 * 8) * kStem3x3Outputs * 2 + ((i * 2 + lane / 8 % 2) ^ lane % 8) * 16;
  }
  const uint32_t pixels = kPixelsAt + (lane % 16 + lane / 16 * Tile::kThird) * 16;
  const uint32_t one = T(1.f).bits;
  float sums[4][kStem3x3Kernel * 2][4] = {};
  const auto compute = [&](int, int slot) {
    const uint32_t stage = own + slot * kStage;
    uint32_t a[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      load_transposed(a[i], stage + positions[i]);
      if constexpr (kSign) {
        uint32_t signs[4];
        load_transposed(signs, stage + positions[i] + kPositionsBytes);
#pragma unroll
        for (int k = 0; k < 4; ++k) a[i][k] = where_positive(a[i][k], signs[k]);
      }
    }
#pragma unroll
    for (int row = 0; row < kStem3x3Kernel; ++row) {
      uint32_t b[4];
      load_transposed(b, stage + pixels + row * Tile::kRow);
      if (row == 0 && lane / 4 == kStem3x3Ones - 8) b[2] = b[3] = one | one << 16;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        multiply_add<T>(sums[i][row * 2], a[i], b[0], b[1]);
        multiply_add<T>(sums[i][row * 2 + 1], a[i], b[2], b[3]);
      }
    }
  };
  for_tiles<kStages>(n.tiles, load, compute);

  // The warps' sums, one after the other, are this block's part.
  constexpr int kSums = kStem3x3Outputs * kStem3x3Depth;
  float* const shared = reinterpret_cast<float*>(memory);
  wait_for_copies<0>();
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < kStem3x3Kernel * 2; ++j) {
      float* const to =
          shared + warp * kSums + (i * 16 + lane / 4) * kStem3x3Depth + j * 8 + lane % 4 * 2;
      *reinterpret_cast<float2*>(to) = make_float2(sums[i][j][0], sums[i][j][1]);
      *reinterpret_cast<float2*>(to + 8 * kStem3x3Depth) =
          make_float2(sums[i][j][2], sums[i][j][3]);
    }
  }
  __syncthreads();
  float* const part = parts + (static_cast<int64_t>(blockIdx.x) * gridDim.y + blockIdx.y) * kSums;
  for (int at = static_cast<int>(threadIdx.x); at < kSums; at += static_cast<int>(blockDim.x)) {
    float sum = 0;
    for (int other = 0; other < static_cast<int>(blockDim.x) / 32; ++other)
      sum += shared[other * kSums + at];
    part[at] = sum;
  }
#endif
}

struct StoreStem3x3 {
  float *dw, *db;
  int channels;  // of dw in memory
  bool accumulate_w, accumulate_b;
  float factor;

  __device__ void operator()(int element, float sum) const {
    const int output = element / kStem3x3Depth, at = element % kStem3x3Depth;
    const int row = at / 16, column = at / 4 % 4;
    sum *= factor;
    if (column < kStem3x3Kernel) {
      float* const to =
          dw + ((output * kStem3x3Kernel + row) * kStem3x3Kernel + column) * channels + at % 4;
      *to = accumulate_w ? *to + sum : sum;
      if (channels == 8 && !accumulate_w) to[4] = 0;
    } else if (db && at == kStem3x3Ones) {
      db[output] = accumulate_b ? db[output] + sum : sum;
    }
  }
};

class Stem3x3Conv final : public StemConv {
 public:
  Stem3x3Conv(const ConvCase& c, int processors, int shared_bytes)
      : StemConv(c, kStem3x3Depth), n_(c) {
    const auto blocks = [&](int maximum, int threads) {
      const int warps = threads / 32, needed = (n_.tiles + warps - 1) / warps;
      return dim3(std::min(maximum, needed), n_.outputs / kStem3x3Outputs);
    };
    fprop_blocks_ = blocks(2 * processors, kMaxThreads);
    wgrad_threads_ = std::min(kMaxThreads, shared_bytes / bytes_of_warp() * 32);
    wgrad_blocks_ = blocks(processors, wgrad_threads_);
  }

  LinearKernelFeatures features() const override {
    return {.relu_gradient = true, .bias_gradient = true};
  }

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor&) override {
    with_case(c_.relu.on, [&]<typename T, int kStride, bool kRelu>() {
      constexpr size_t kBytes = kMaxThreads / 32 * kStages * Stem3x3Tile<kStride>::kBytes;
      launch(context.gpu(), stem_3x3_fprop<T, kStride, kRelu>, {fprop_blocks_, kMaxThreads, kBytes},
             n_, x.data<T>(), w.data<T>(), b ? b.data<T>() : nullptr, y.data<T>());
    });
  }

  void backward_weights(Context& context, const Tensor& x, const OutputGradient& g,
                        const Tensor& dw, const Tensor& db, bool accumulate_w, bool accumulate_b,
                        const Tensor& workspace) override {
    float* const parts = workspace.data<float>();
    with_case(g.y != nullptr, [&]<typename T, int kStride, bool kSign>() {
      const auto kernel = stem_3x3_wgrad<T, kStride, kSign>;
      const int bytes = wgrad_threads_ / 32 * bytes_of_warp();
      check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                 "reserving shared memory");
      launch(context.gpu(), kernel,
             {wgrad_blocks_, static_cast<unsigned>(wgrad_threads_), static_cast<size_t>(bytes)}, n_,
             x.data<T>(), g.dy.data<T>(), kSign ? g.y->data<T>() : nullptr, parts);
    });
    add_blocks(context, workspace,
               StoreStem3x3{dw.data<float>(), db.data<float>(), n_.channels, accumulate_w,
                            accumulate_b, g.factor});
  }

 private:
  // Shared memory per warp in the weight gradient: first stages, later sums.
  int bytes_of_warp() const {
    const int stage = wgrad_stage(static_cast<int>(c_.stride[0]), c_.relu.on);
    return std::max(kStages * stage,
                    kStem3x3Outputs * kStem3x3Depth * static_cast<int>(sizeof(float)));
  }
  // Calls body<T, stride, flag>().
  template <typename Body>
  void with_case(bool flag, const Body& body) const {
    const auto with_stride = [&]<typename T, int kStride>() {
      return flag ? body.template operator()<T, kStride, true>()
                  : body.template operator()<T, kStride, false>();
    };
    const auto with_type = [&]<typename T>() {
      return c_.stride[0] == 1 ? with_stride.template operator()<T, 1>()
                               : with_stride.template operator()<T, 2>();
    };
    return c_.dtype == DType::f16 ? with_type.template operator()<Half>()
                                  : with_type.template operator()<BFloat16>();
  }

  Stem3x3Params n_;
  int wgrad_threads_;
};

}  // namespace

Stem3x3Params::Stem3x3Params(const ConvCase& c) {
  const auto to_int = [](int64_t value) { return static_cast<int>(value); };
  images = to_int(c.x[0]), height = to_int(c.x[2]), width = to_int(c.x[3]);
  channels = to_int(c.x_channels > 0 ? c.x_channels : c.x[1]);
  outputs = to_int(c.y[1]), out_height = to_int(c.y[2]), out_width = to_int(c.y[3]);
  top = to_int(c.pad[0]), left = to_int(c.pad[1]);
  const int row = (out_width + kStem3x3Positions - 1) / kStem3x3Positions;
  tiles = images * out_height * row;
  by_row = Divisor(row), by_height = Divisor(out_height);
}

namespace {

std::unique_ptr<LinearKernel> make_conv_stem_3x3(Context& context, const ConvCase& c,
                                                 std::string& reason) {
  using Pair = std::vector<int64_t>;
  const int64_t channels = c.x_channels > 0 ? c.x_channels : c.x[1];
  constexpr int64_t kMax = int64_t{1} << 30;  // limit of the values stored as int
  if (!supports_stem(context, c, reason)) return nullptr;
  if (c.w[2] != kStem3x3Kernel || c.w[3] != kStem3x3Kernel || c.dilation != Pair{1, 1} ||
      (c.stride != Pair{1, 1} && c.stride != Pair{2, 2})) {
    reason = "for kernels of 3x3 with stride 1 or 2 and without dilation only";
  } else if (c.x[1] > 4 || (channels != 4 && channels != 8)) {
    reason = "for at most 4 channels, 4 or 8 in memory, only";
  } else if (c.w[0] % kStem3x3Outputs != 0) {
    reason = cat("outputs that are no multiple of ", kStem3x3Outputs);
  } else if (c.x.count() / c.x[1] * channels > kMax || c.y.count() / c.y[1] > kMax) {
    reason = "too large an image";
  } else {
    return std::make_unique<Stem3x3Conv>(c, context.gpu().card.multiprocessors,
                                         context.gpu().card.dynamic_shared_limit());
  }
  return nullptr;
}

REGISTER_KERNEL(conv_kernels, "stem_3x3", RunsOn::gpu, 85, make_conv_stem_3x3);

}  // namespace
}  // namespace crema
