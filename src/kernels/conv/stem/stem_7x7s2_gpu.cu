// Convolution of a net's first layer straight from the image's rows (stem_7x7s2.cuh), on tensor
// cores. Bound by reading x once and y or dy once, and by 224 / 147 of the multiply-adds.
#include <algorithm>

#include "base/ceil_div.h"
#include "kernels/conv/stem/stem.cuh"
#include "kernels/conv/stem/stem_7x7s2.cuh"
#include "tensor/on.h"

namespace crema {
namespace {

// Two rows of positions of dy fill the shared memory.
constexpr int kWgradBand = 2;
constexpr int kDyPitch = kStem7x7Outputs * 2 + 16;  // bytes; ldmatrix has no bank conflicts

CREMA_HD int fprop_stage(const Stem7x7s2Params& n) { return rows_under(kFpropBand) * n.pitch * 16; }
CREMA_HD int wgrad_x(const Stem7x7s2Params& n) { return rows_under(kWgradBand) * n.pitch * 16; }
CREMA_HD int wgrad_stage(const Stem7x7s2Params& n) {
  return wgrad_x(n) + kWgradBand * n.tiles * kStem7x7Positions * kDyPitch;
}

// A warp computes a row of positions of the band and half of the outputs, whose weights stay in
// registers. The outputs are the columns of the products, permuted so that each lane gets eight
// contiguous ones. kSums: also computes the per-channel sums of y, before rounding, and of its
// squares.
template <typename T, bool kSums>
__global__ void __launch_bounds__(kStem7x7Threads, 1)
    stem_7x7s2_fprop(Stem7x7s2Params n, const T* x, const T* w, const T* bias, bool relu, T* y,
                     Stem7x7s2Sums channels) {
#if __CUDA_ARCH__ >= 800  // older cards lack these instructions: make_conv_stem_7x7s2 declines them
  extern __shared__ __align__(128) unsigned char memory[];
  constexpr int kSteps = kStem7x7Depth / 16;
  const uint32_t base = shared_address(memory);
  const int stage = fprop_stage(n);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp / 2;
  const int first_output = static_cast<int>(blockIdx.y) * kStem7x7Outputs + warp % 2 * 32;

  uint32_t b[kSteps][4][2];
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int k = step % 2 * 16 + half * 8 + lane % 4 * 2, pixel = k / 4 - n.shift;
        const int output = first_output + lane / 8 * 8 + j * 2 + lane / 4 % 2;
        const int at = (output * kStem7x7Kernel + step / 2) * n.kernel_width + pixel;
        b[step][j][half] = pixel >= 0 && pixel < n.kernel_width
                               ? *reinterpret_cast<const uint32_t*>(w + at * 4 + k % 4)
                               : 0;
      }
    }
  }
  float added[4][2] = {};
  if (bias) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      added[j][0] = bias[first_output + lane % 4 * 8 + j * 2];
      added[j][1] = bias[first_output + lane % 4 * 8 + j * 2 + 1];
    }
  }

  [[maybe_unused]] float totals[2][4][2] = {};  // for this lane's eight channels

  const int bands = (n.out_height + kFpropBand - 1) / kFpropBand, work = n.images * bands;
  const auto load = [&](int item, int slot) {
    if (item < work)
      load_rows<T, kFpropBand>(n, x, item / bands, item % bands * kFpropBand, base + slot * stage);
    end_copies();
  };
  load(static_cast<int>(blockIdx.x), 0);
  int slot = 0;
  for (int item = static_cast<int>(blockIdx.x); item < work; item += static_cast<int>(gridDim.x)) {
    load(item + static_cast<int>(gridDim.x), slot ^ 1);
    wait_for_copies<1>();
    __syncthreads();
    const int position = item % bands * kFpropBand + row;
    const uint32_t lane_at = base + slot * stage + (2 * row * n.pitch + lane % 16 + lane / 16) * 16;
    T* const out =
        y +
        (static_cast<int64_t>(item / bands) * n.out_height + position) * n.out_width * n.outputs +
        first_output + lane % 4 * 8;
    for (int tile = 0; tile < (position < n.out_height ? n.tiles : 0); ++tile) {
      const uint32_t from = lane_at + tile * kStem7x7Positions * 16;
      float sums[4][4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        sums[j][0] = sums[j][2] = added[j][0];
        sums[j][1] = sums[j][3] = added[j][1];
      }
      uint32_t a[2][4];
      load_matrices(a[0], from);
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        if (step + 1 < kSteps)
          load_matrices(a[(step + 1) % 2],
                        from + ((step + 1) / 2 * n.pitch + (step + 1) % 2 * 2) * 16);
#pragma unroll
        for (int j = 0; j < 4; ++j)
          multiply_add<T>(sums[j], a[step % 2], b[step][j][0], b[step][j][1]);
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        uint32_t v[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float first = sums[j][2 * half], second = sums[j][2 * half + 1];
          v[j] =
              relu ? rounded_pair<T, true>(first, second) : rounded_pair<T, false>(first, second);
        }
        const int column = tile * kStem7x7Positions + half * 8 + lane / 4;
        if (column >= n.out_width) continue;
        *reinterpret_cast<uint4*>(out + static_cast<int64_t>(column) * n.outputs) =
            make_uint4(v[0], v[1], v[2], v[3]);
        if constexpr (kSums) {
#pragma unroll
          for (int j = 0; j < 4; ++j) {
#pragma unroll
            for (int k = 0; k < 2; ++k) {
              const float value = sums[j][2 * half + k];
              totals[0][j][k] += value;
              totals[1][j][k] += value * value;
            }
          }
        }
      }
    }
    __syncthreads();
    slot ^= 1;
  }
  if constexpr (kSums) {
    wait_for_copies<0>();
    channels.add(n, reinterpret_cast<float(*)[2][32]>(memory), totals);
  }
#endif
}

// A warp computes a row of positions of the band, all outputs and one chunk of each of the kernel's
// rows.
template <typename T>
__global__ void __launch_bounds__(kStem7x7Threads, 1)
    stem_7x7s2_wgrad(Stem7x7s2Params n, const T* x, const T* dy, float* parts) {
#if __CUDA_ARCH__ >= 800
  extern __shared__ __align__(128) unsigned char memory[];
  const uint32_t base = shared_address(memory);
  const int stage = wgrad_stage(n), dy_at = wgrad_x(n);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp / kStem7x7Chunks, chunk = warp % kStem7x7Chunks;
  const int positions = n.tiles * kStem7x7Positions,
            first_output = static_cast<int>(blockIdx.y) * kStem7x7Outputs;

  const int bands = (n.out_height + kWgradBand - 1) / kWgradBand, work = n.images * bands;
  const auto load = [&](int item, int slot) {
    if (item < work) {
      const int image = item / bands, first = item % bands * kWgradBand;
      load_rows<T, kWgradBand>(n, x, image, first, base + slot * stage);
      const uint32_t to = base + slot * stage + dy_at;
      for (int at = static_cast<int>(threadIdx.x); at < kWgradBand * positions * 8;
           at += kStem7x7Threads) {
        const int position = at / 8, y = position >= positions ? 1 : 0,
                  column = position - y * positions;
        const bool inside = first + y < n.out_height && column < n.out_width;
        const int64_t from =
            (static_cast<int64_t>(image) * n.out_height + first + y) * n.out_width + column;
        copy_async<16>(to + position * kDyPitch + at % 8 * 16,
                       dy + (inside ? from * n.outputs + first_output + at % 8 * 8 : 0), inside);
      }
    }
    end_copies();
  };
  float sums[4][8][4] = {};  // 16 outputs, 8 elements of a chunk; the eighth row does not exist
  load(static_cast<int>(blockIdx.x), 0);
  int slot = 0;
  for (int item = static_cast<int>(blockIdx.x); item < work; item += static_cast<int>(gridDim.x)) {
    load(item + static_cast<int>(gridDim.x), slot ^ 1);
    wait_for_copies<1>();
    __syncthreads();
    const uint32_t dy_from = base + slot * stage + dy_at +
                             (row * positions + (lane & 7) + (lane >> 4 & 1) * 8) * kDyPitch +
                             (lane >> 3 & 1) * 16;
    const uint32_t x_from =
        base + slot * stage + ((2 * row + (lane >> 4)) * n.pitch + chunk + lane % 16) * 16;
    for (int tile = 0; tile < n.tiles; ++tile) {
      uint32_t a[4][4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        load_transposed(a[i], dy_from + tile * kStem7x7Positions * kDyPitch + i * 32);
#pragma unroll
      for (int pair = 0; pair < 4; ++pair) {
        uint32_t b[4];
        // The last pair has only one row: its second half is loaded again and not used.
        const int down = pair == 3 ? 2 * pair - (lane >> 4) : 2 * pair;
        load_transposed(b, x_from + (down * n.pitch + tile * kStem7x7Positions) * 16);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          multiply_add<T>(sums[i][2 * pair], a[i], b[0], b[1]);
          if (pair < 3) multiply_add<T>(sums[i][2 * pair + 1], a[i], b[2], b[3]);
        }
      }
    }
    __syncthreads();
    slot ^= 1;
  }

  // Adds the second row's sums to the first's; then writes this block's part, outputs x
  // kStem7x7Depth.
  float* const shared = reinterpret_cast<float*>(memory);
  float* const part = parts + (static_cast<int64_t>(blockIdx.x) * gridDim.y + blockIdx.y) *
                                  kStem7x7Outputs * kStem7x7Depth;
  wait_for_copies<0>();
  __syncthreads();
#pragma unroll
  for (int turn = 1; turn >= 0; --turn) {
    if (row == turn) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int r = 0; r < kStem7x7Kernel; ++r) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int at = (i * 16 + half * 8 + lane / 4) * kStem7x7Depth +
                           (r * kStem7x7Chunks + chunk) * 8 + lane % 4 * 2;
            float2 value = make_float2(sums[i][r][2 * half], sums[i][r][2 * half + 1]);
            if (turn == 1) {
              *reinterpret_cast<float2*>(shared + at) = value;
            } else {
              const float2 other = *reinterpret_cast<const float2*>(shared + at);
              *reinterpret_cast<float2*>(part + at) =
                  make_float2(value.x + other.x, value.y + other.y);
            }
          }
        }
      }
    }
    __syncthreads();
  }
#endif
}

struct StoreStem7x7s2 {
  Stem7x7s2Params n;
  float* dw;
  bool accumulate;

  __device__ void operator()(int element, float sum) const {
    const int k = element % kStem7x7Depth, output = element / kStem7x7Depth;
    const int row = k / (kStem7x7Chunks * 8), pixel = k / 4 % (kStem7x7Chunks * 2) - n.shift;
    if (pixel < 0 || pixel >= n.kernel_width) return;
    float* const to =
        dw + ((static_cast<int64_t>(output) * kStem7x7Kernel + row) * n.kernel_width + pixel) * 4 +
        k % 4;
    *to = accumulate ? *to + sum : sum;
  }
};

class Stem7x7s2Conv final : public StemConv {
 public:
  Stem7x7s2Conv(const ConvCase& c, int processors) : StemConv(c, kStem7x7Depth), n_(c) {
    const int groups = n_.outputs / kStem7x7Outputs;
    fprop_blocks_ =
        dim3(std::min(processors, n_.images * ceil_div(n_.out_height, kFpropBand)), groups);
    wgrad_blocks_ =
        dim3(std::min(processors, n_.images * ceil_div(n_.out_height, kWgradBand)), groups);
  }

  // Shared memory of a thread block.
  static int shared_bytes(const Stem7x7s2Params& n) {
    return std::max({2 * fprop_stage(n), 2 * wgrad_stage(n),
                     kStem7x7Outputs * kStem7x7Depth * static_cast<int>(sizeof(float))});
  }

  LinearKernelFeatures features() const override {
    // Each block leaves its sums in Gpu::partial_sums.
    const int64_t parts = int64_t{fprop_blocks_.x} * 2 * n_.outputs;
    return {.forward_statistics =
                c_.statistics && !c_.bias && !c_.relu.on && parts <= Gpu::kPartialSums};
  }

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor&) override {
    run_forward<false>(context, x, w, b, y, {});
  }
  void forward_with_statistics(Context& context, const Tensor& x, const Tensor&, const Tensor& w,
                               const Tensor& y, const Tensor& sums, const Tensor&) override {
    const Gpu& gpu = context.gpu();
    run_forward<true>(context, x, w, Tensor(), y,
                      {sums.data<float>(), gpu.partial_sums, gpu.counters});
  }

  void backward_weights(Context& context, const Tensor& x, const OutputGradient& g,
                        const Tensor& dw, const Tensor&, bool accumulate, bool,
                        const Tensor& workspace) override {
    on_half(c_.dtype, [&]<typename T>() {
      reserve(stem_7x7s2_wgrad<T>);
      launch(context.gpu(), stem_7x7s2_wgrad<T>, {wgrad_blocks_, kStem7x7Threads, bytes()}, n_,
             x.data<T>(), g.dy.data<T>(), workspace.data<float>());
    });
    add_blocks(context, workspace, StoreStem7x7s2{n_, dw.data<float>(), accumulate});
  }

 private:
  template <bool kSums>
  void run_forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
                   const Tensor& y, const Stem7x7s2Sums& sums) const {
    on_half(c_.dtype, [&]<typename T>() {
      const auto kernel = stem_7x7s2_fprop<T, kSums>;
      reserve(kernel);
      launch(context.gpu(), kernel, {fprop_blocks_, kStem7x7Threads, bytes()}, n_, x.data<T>(),
             w.data<T>(), b ? b.data<T>() : nullptr, c_.relu.on, y.data<T>(), sums);
    });
  }

  size_t bytes() const { return static_cast<size_t>(shared_bytes(n_)); }
  template <typename Kernel>
  void reserve(Kernel* kernel) const {
    check_cuda(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes(n_)),
        "reserving shared memory");
  }

  Stem7x7s2Params n_;
};

}  // namespace

Stem7x7s2Params::Stem7x7s2Params(const ConvCase& c) {
  const auto to_int = [](int64_t value) { return static_cast<int>(value); };
  images = to_int(c.x[0]), height = to_int(c.x[2]), width = to_int(c.x[3] / 2);
  outputs = to_int(c.y[1]), out_height = to_int(c.y[2]), out_width = to_int(c.y[3]);
  kernel_width = to_int(c.w[3]);
  shift = to_int(c.pad[1] % 2);
  left = to_int((c.pad[1] + shift) / 2), top = to_int(c.pad[0]);
  tiles = ceil_div(out_width, kStem7x7Positions);
  pitch = tiles * kStem7x7Positions + kStem7x7Chunks - 1;
  by_pitch = Divisor(pitch);
}

namespace {

std::unique_ptr<LinearKernel> make_conv_stem_7x7s2(Context& context, const ConvCase& c,
                                                   std::string& reason) {
  const int64_t channels = c.x_channels > 0 ? c.x_channels : c.x[1];
  const std::vector<int64_t> two = {2, 2}, one = {1, 1};
  if (!supports_stem(context, c, reason)) return nullptr;
  if (c.stride != two || c.dilation != one || channels != 4) {
    reason = "for stride 2 without dilation on 4 channels in memory only";
  } else if (c.w[2] != kStem7x7Kernel || c.w[3] + c.pad[1] % 2 > 2 * kStem7x7Chunks) {
    reason = "for kernels of 7 rows and at most 7 or 8 columns only";
  } else if (c.x[3] % 2 != 0 || c.w[0] % kStem7x7Outputs != 0) {
    reason = cat("an odd width, or outputs that are no multiple of ", kStem7x7Outputs);
  } else if (Stem7x7s2Conv::shared_bytes(Stem7x7s2Params(c)) >
             context.gpu().card.dynamic_shared_limit()) {
    reason = "rows too long for the shared memory";
  } else {
    return std::make_unique<Stem7x7s2Conv>(c, context.gpu().card.multiprocessors);
  }
  return nullptr;
}

REGISTER_KERNEL(conv_kernels, "stem_7x7s2", RunsOn::gpu, 90, make_conv_stem_7x7s2);

}  // namespace
}  // namespace crema
