// Row normalization on the GPU: one warp or block per row, which is kept in registers where these
// suffice; the gradients of scale and shift are sums over all rows.
#include <algorithm>

#include "base/ceil_div.h"
#include "device/launch.h"
#include "device/parallel.h"
#include "kernels/core/divisor.h"
#include "kernels/core/mma.cuh"
#include "kernels/core/warp.cuh"
#include "kernels/norm/row_norm.h"
#include "kernels/norm/row_norm_float64.h"
#include "kernels/reduce/column_reduce.cuh"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr int kBlock = 256;

// What kernels take, with segments counted in packs.
struct Rows {
  RowNormCase c;
  RowNormView view;
  int packs;  // per row
  Divisor by_segment;
  float divisor;
  const float *scale, *shift;
  float *mean, *inverse;

  Rows(const RowNormCase& c, const RowNormParameters& p, const RowNormSaved& saved, int pack)
      : c(c),
        view(c.view),
        packs(static_cast<int>(c.view.length() / pack)),
        by_segment(static_cast<int>(c.view.segment / pack)),
        divisor(static_cast<float>(c.divisor())),
        scale(p.scale.data<float>()),
        shift(p.shift.data<float>()),
        mean(saved.mean.data<float>()),
        inverse(saved.inverse.data<float>()) {}

  __device__ float mean_of(int64_t row) const { return mean ? mean[row] : 0; }
};

// A thread's part of a row: at most kEach packs, which are then kept in registers, or with 0 any
// number. kThreads threads share the row.
template <typename T, int kPack, int kThreads, int kEach>
struct RowPart {
  using P = Pack<T, kPack>;
  static constexpr int kKept = kEach > 0 ? kEach : 1;
  static constexpr int kBlock = kThreads < 256 ? 256 : kThreads;
  const Rows& n;
  int64_t row = static_cast<int64_t>(blockIdx.x) * (kBlock / kThreads) + threadIdx.x / kThreads;

  // Calls visit(index among this thread's packs, memory offset, first parameter) for each.
  template <typename Visit>
  __device__ void over(const Visit& visit) const {
    const int64_t begin = n.view.begin(row), parameter = n.view.first_parameter(row);
    const auto one = [&](int e, int pack) {
      int in_segment;
      const int segment = n.by_segment.split(pack, in_segment);
      visit(e, begin + segment * n.view.segment_stride + in_segment * kPack,
            parameter + (n.view.parameter_per_segment ? segment : in_segment * kPack));
    };
    const int first = static_cast<int>(threadIdx.x) % kThreads;
    if constexpr (kEach > 0) {
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        if (first + e * kThreads < n.packs) one(e, first + e * kThreads);
      }
    } else {
      for (int pack = first; pack < n.packs; pack += kThreads) one(0, pack);
    }
  }
  __device__ void keep(const T* from, P (&kept)[kKept]) const {
    if constexpr (kEach > 0)
      over([&](int e, int64_t at, int64_t) { kept[e] = *reinterpret_cast<const P*>(from + at); });
  }
  __device__ P take(const T* from, const P (&kept)[kKept], int e, int64_t at) const {
    if constexpr (kEach > 0) return kept[e];
    return *reinterpret_cast<const P*>(from + at);
  }
  // The scale or shift parameters of a pack, `otherwise` where there are none.
  __device__ void numbers(const float* from, float otherwise, int64_t parameter,
                          float (&to)[kPack]) const {
    // As many bytes as a pack of T: the pointers are aligned no further.
    constexpr int kWidth = kPack * sizeof(T) < 4 ? 1 : kPack * static_cast<int>(sizeof(T)) / 4;
    using ParameterPack = Pack<float, kWidth>;
#pragma unroll
    for (int k = 0; k < kPack; ++k) to[k] = otherwise;
    if (!from) return;
    if (n.view.parameter_per_segment) {
#pragma unroll
      for (int k = 0; k < kPack; ++k) to[k] = from[parameter];
      return;
    }
#pragma unroll
    for (int k = 0; k < kPack; k += kWidth) {
      const ParameterPack some = *reinterpret_cast<const ParameterPack*>(from + parameter + k);
#pragma unroll
      for (int j = 0; j < kWidth; ++j) to[k + j] = some.v[j];
    }
  }
  __device__ static float all(float value) {
    if constexpr (kThreads == 32) return warp_all(value, Plus{});
    return block_all(value, Plus{});
  }
};

template <typename T, int kPack, int kThreads, int kEach>
__global__ void __launch_bounds__(kThreads < 256 ? 256 : kThreads)
    normalize(Rows n, const T* x, T* y) {
  using P = Pack<T, kPack>;
  const RowPart<T, kPack, kThreads, kEach> part{n};
  const int64_t row = part.row;
  if (row >= n.view.rows) return;
  P kept[part.kKept];
  part.keep(x, kept);
  const float pivot = n.mean ? static_cast<float>(x[n.view.begin(row)])
                             : 0;  // sums of differences from it suffer no cancellation
  float sum = 0, squares = 0;
  part.over([&](int e, int64_t at, int64_t) {
    const P p = part.take(x, kept, e, at);
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      const float difference = static_cast<float>(p.v[k]) - pivot;
      sum += difference, squares += difference * difference;
    }
  });
  const float near = n.mean ? part.all(sum) / n.divisor : 0;
  const float mean = pivot + near;
  const float variance =
      part.all(squares) / n.divisor - near * near;  // rounding may make it negative
  const float inverse = n.c.inverse_of(variance > 0 ? variance : 0);
  if (threadIdx.x % kThreads == 0) {
    if (n.mean) n.mean[row] = mean;
    n.inverse[row] = inverse;
  }
  part.over([&](int e, int64_t at, int64_t parameter) {
    P p = part.take(x, kept, e, at);
    float factor[kPack], summand[kPack];
    part.numbers(n.scale, 1, parameter, factor);
    part.numbers(n.shift, 0, parameter, summand);
#pragma unroll
    for (int k = 0; k < kPack; ++k)
      p.v[k] = (static_cast<float>(p.v[k]) - mean) * inverse * factor[k] + summand[k];
    *reinterpret_cast<P*>(y + at) = p;
  });
}

template <typename T, int kPack, int kThreads, int kEach>
__global__ void __launch_bounds__(kThreads < 256 ? 256 : kThreads)
    gradient(Rows n, const T* x, const T* dy, T* dx) {
  using P = Pack<T, kPack>;
  const RowPart<T, kPack, kThreads, kEach> part{n};
  const int64_t row = part.row;
  if (row >= n.view.rows) return;
  P kept_x[part.kKept], kept_dy[part.kKept];
  part.keep(x, kept_x);
  part.keep(dy, kept_dy);
  // What is read as x is already normalized where it is y.
  const float mean = n.c.backward_reads_y ? 0 : n.mean_of(row), inverse = n.inverse[row];
  const float by = n.c.backward_reads_y ? 1 : inverse;
  float sum = 0, product = 0;
  part.over([&](int e, int64_t at, int64_t parameter) {
    const P p = part.take(x, kept_x, e, at), d = part.take(dy, kept_dy, e, at);
    float factor[kPack];
    part.numbers(n.scale, 1, parameter, factor);
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      const float g = static_cast<float>(d.v[k]) * factor[k];
      sum += g, product += g * (static_cast<float>(p.v[k]) - mean) * by;
    }
  });
  const float mean_g = n.mean ? part.all(sum) / n.divisor : 0;
  const float mean_gx =
      n.c.divide == RowNormCase::Divide::nothing ? 0 : part.all(product) / n.divisor;
  part.over([&](int e, int64_t at, int64_t parameter) {
    const P p = part.take(x, kept_x, e, at);
    P d = part.take(dy, kept_dy, e, at);
    float factor[kPack];
    part.numbers(n.scale, 1, parameter, factor);
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      const float g = static_cast<float>(d.v[k]) * factor[k];
      d.v[k] = inverse * (g - mean_g - (static_cast<float>(p.v[k]) - mean) * by * mean_gx);
    }
    *reinterpret_cast<P*>(dx + at) = d;
  });
}

struct Sums {
  float *d_scale, *d_shift;  // null: not wanted
  bool accumulate_scale, accumulate_shift;

  __device__ void put(int64_t parameter, float scale, float shift) const {
    if (d_scale) d_scale[parameter] = accumulate_scale ? d_scale[parameter] + scale : scale;
    if (d_shift) d_shift[parameter] = accumulate_shift ? d_shift[parameter] + shift : shift;
  }
};

// One parameter per segment: each block computes one, over all images.
template <typename T>
__global__ void __launch_bounds__(kBlock) sum_segments(Rows n, const T* x, const T* dy, Sums sums) {
  const int64_t parameter = blockIdx.x, group = parameter / n.view.segments;
  const int64_t in_image =
      group * n.view.group_step + parameter % n.view.segments * n.view.segment_stride;
  const int64_t images = n.view.rows / n.view.groups;
  float scale = 0, shift = 0;
  for (int64_t image = 0; image < images; ++image) {
    const int64_t at = image * n.view.image_step + in_image, row = image * n.view.groups + group;
    const float mean = n.mean_of(row), inverse = n.inverse[row];
    for (int64_t k = threadIdx.x; k < n.view.segment; k += kBlock) {
      const float g = dy[at + k];
      shift += g, scale += g * (static_cast<float>(x[at + k]) - mean) * inverse;
    }
  }
  scale = block_all(scale, Plus{});
  shift = block_all(shift, Plus{});
  if (threadIdx.x == 0) sums.put(parameter, scale, shift);
}

// One parameter per position in a segment: columns of a matrix with a row for each segment of each
// image.
template <typename T, int kPack>
__global__ void __launch_bounds__(kBlock)
    sum_positions(ColumnGrid grid, Rows n, const T* x, const T* dy, Sums sums, float* parts,
                  unsigned* counters) {
  using P = Pack<T, kPack>;
  const int64_t own = first_column<kPack>(grid);
  const int64_t group = own / n.view.segment;
  const auto visit = [&]<int kRows>(const RowSet& rows, int64_t column, float(&into)[2][kPack]) {
    P p[kRows], d[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int64_t at = (rows.first + r * rows.step) * grid.columns + column;
      p[r] = *reinterpret_cast<const P*>(x + at);
      d[r] = *reinterpret_cast<const P*>(dy + at);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int64_t segment = rows.first + r * rows.step;
      const int64_t image = n.view.segments == 1 ? segment : segment / n.view.segments;
      const int64_t row = image * n.view.groups + group;
      const float mean = n.mean_of(row), inverse = n.inverse[row];
#pragma unroll
      for (int k = 0; k < kPack; ++k) {
        const float g = d[r].v[k];
        into[0][k] += g * (static_cast<float>(p[r].v[k]) - mean) * inverse;
        into[1][k] += g;
      }
    }
  };
  sum_columns<kPack, 2>(grid, parts, counters, visit, [&](int64_t parameter, const double* totals) {
    sums.put(parameter, static_cast<float>(totals[0]), static_cast<float>(totals[1]));
  });
}

// Calls body<T, kPack>() with the widest pack that divides all segments; x is not float64.
template <typename Body, typename... Tensors>
void with_pack(const RowNormView& v, const Tensor& x, const Body& body, const Tensors&... others) {
  require(v.length() < (int64_t{1} << 31), "rows of ", v.length(), " elements are too long");
  const auto divides = [&](int64_t pack) {
    return v.segment % pack == 0 && v.segment_stride % pack == 0 && v.group_step % pack == 0 &&
           v.image_step % pack == 0;
  };
  const int64_t common = divides(8) ? 8 : divides(4) ? 4 : divides(2) ? 2 : 1;
  on_real(x, [&]<typename T>() {
    if constexpr (!std::is_same_v<T, double>) {
      with_column_pack<T>(
          common, [&]<int kPack>() { body.template operator()<T, kPack>(); }, x.raw(),
          others.raw()...);
    }
  });
}

// Calls body<kThreads, kEach>(launch shape): how many threads share a row, and how many of its
// packs each keeps.
template <typename T, int kPack, typename Body>
void with_threads(const Rows& n, const Body& body) {
  const auto with = [&]<int kThreads, int kEach>() {
    constexpr int kBlock = std::max(256, kThreads), kRows = kBlock / kThreads;
    const auto blocks = static_cast<unsigned>(ceil_div(n.view.rows, kRows));
    body.template operator()<kThreads, kEach>(LaunchShape{blocks, kBlock});
  };
  if constexpr (kPack == kPackCount<T>) {
    if (n.packs <= 4 * 32) return with.template operator()<32, 4>();
    if (n.packs <= 4 * 256) return with.template operator()<256, 4>();
    if (n.packs <= 4 * 1024) return with.template operator()<1024, 4>();
  } else {
    if (n.packs <= 256) return with.template operator()<32, 0>();
  }
  with.template operator()<1024, 0>();
}

Refusal row_norm_forward_gpu(Context& context, const RowNormCase& c,
                             const RowNormParameters& parameters, const Tensor& x, const Tensor& y,
                             const RowNormSaved& saved) {
  if (x.dtype() == DType::f64) {
    const ForwardFloat64 body{rows_float64(c, parameters, x, Tensor(), saved), y.data<double>()};
    parallel_for(context, c.view.rows, body);
    return nullptr;
  }
  with_pack(
      c.view, x,
      [&]<typename T, int kPack>() {
        const Rows rows(c, parameters, saved, kPack);
        with_threads<T, kPack>(rows, [&]<int kThreads, int kEach>(const LaunchShape& shape) {
          launch(context.gpu(), normalize<T, kPack, kThreads, kEach>, shape, rows, x.data<T>(),
                 y.data<T>());
        });
      },
      y, parameters.scale, parameters.shift);
  return nullptr;
}

Refusal row_norm_backward_gpu(Context& context, const RowNormCase& c,
                              const RowNormParameters& parameters, const Tensor& x,
                              const Tensor& dy, const RowNormSaved& saved,
                              const RowNormGradients& g, const Tensor& /*workspace*/) {
  if (x.dtype() == DType::f64) {
    const RowsFloat64 rows = rows_float64(c, parameters, x, dy, saved);
    const ParametersFloat64 sums{rows, g.d_scale.data<double>(), g.d_shift.data<double>(),
                                 g.accumulate_scale, g.accumulate_shift};
    if (g.d_scale || g.d_shift) parallel_for(context, c.view.parameters(), sums);
    if (g.dx) parallel_for(context, c.view.rows, GradientFloat64{rows, g.dx.data<double>()});
    return nullptr;
  }
  const Gpu& gpu = context.gpu();
  const Sums sums{g.d_scale.data<float>(), g.d_shift.data<float>(), g.accumulate_scale,
                  g.accumulate_shift};
  with_pack(
      c.view, x,
      [&]<typename T, int kPack>() {
        const Rows rows(c, parameters, saved, kPack);
        if ((g.d_scale || g.d_shift) && c.view.parameter_per_segment) {
          const auto blocks = static_cast<unsigned>(c.view.parameters());
          launch(gpu, sum_segments<T>, {blocks, kBlock}, rows, x.data<T>(), dy.data<T>(), sums);
        } else if (g.d_scale || g.d_shift) {
          const auto kernel = sum_positions<T, kPack>;
          const int64_t images = c.view.rows / c.view.groups;
          const ColumnGrid grid =
              grid_of_sums(kernel, images * c.view.segments, c.view.parameters(), kPack, 2);
          launch(gpu, kernel, {grid.blocks, kBlock}, grid, rows, x.data<T>(), dy.data<T>(), sums,
                 gpu.partial_sums, gpu.counters);
        }
        if (!g.dx) return;
        with_threads<T, kPack>(rows, [&]<int kThreads, int kEach>(const LaunchShape& shape) {
          launch(gpu, gradient<T, kPack, kThreads, kEach>, shape, rows, x.data<T>(), dy.data<T>(),
                 g.dx.data<T>());
        });
      },
      dy, g.dx, parameters.scale);
  return nullptr;
}

REGISTER_KERNEL(row_norm_forward_kernels, "cuda", RunsOn::gpu, 10, row_norm_forward_gpu);
REGISTER_KERNEL(row_norm_backward_kernels, "cuda", RunsOn::gpu, 10, row_norm_backward_gpu);

}  // namespace
}  // namespace crema
