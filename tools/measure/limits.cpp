#include "tools/measure/limits.h"

#include <algorithm>

#include "base/random.h"
#include "device/stopwatch.h"
#include "kernels/conv/dense.h"
#include "kernels/move/reorder.h"
#include "kernels/pointwise/add.h"

namespace crema {

namespace {

constexpr int kTimes = 5;
constexpr size_t kMemory = size_t{4} << 30;  // must be free on a GPU for the large sizes

// Large enough to be limited by the device, and small enough to fit.
int64_t size_for(Context& context, int64_t cpu, int64_t gpu, int64_t small_gpu) {
  if (context.device() == Device::cpu) return cpu;
  return free_memory(context) > kMemory ? gpu : small_gpu;
}

// Random values, always the same: matrices of zeros take less power, and so less time, than others.
Tensor filled(Context& context, const Shape& shape, DType dtype) {
  const Tensor tensor(context, shape, dtype);
  Context host(Device::cpu);
  const int64_t piece = std::min<int64_t>(shape.count(), 1 << 20);
  std::vector<float> values(piece);
  const Random random{1, 1};
  for (int64_t i = 0; i < piece; ++i) values[i] = random.normal(static_cast<uint64_t>(i)) * 0.1f;
  for (int64_t at = 0; at < shape.count(); at += piece) {
    const int64_t count = std::min(piece, shape.count() - at);
    from_floats(
        context, values.data(),
        Tensor(tensor.memory(), static_cast<size_t>(at) * size_of(dtype), Shape{count}, dtype));
  }
  return tensor;
}

// The shortest time of several runs, in seconds.
double fastest(Context& context, const std::function<void()>& work) {
  Stopwatch watch(context);
  work();
  for (int i = 0; i <= kTimes; ++i) {
    watch.mark();
    if (i < kTimes) work();
  }
  const std::vector<double> laps = watch.laps();
  return 1e-3 * *std::min_element(laps.begin(), laps.end());
}

// By products of n x n matrices.
double operations(Context& context, Precision precision, int64_t n) {
  DenseCase c;
  c.rows = c.inputs = c.outputs = n;
  c.precision = precision;
  c.dtype = storage_of(precision, DType::f32);
  const std::unique_ptr<LinearKernel> dense = make_dense(context, c);
  const Tensor x = filled(context, {n, n}, c.dtype), w = filled(context, {n, n}, c.dtype),
               y(context, {n, n}, c.dtype);
  const Tensor workspace(context, {static_cast<int64_t>(dense->workspace())}, DType::u8);
  const double seconds = fastest(context, [&] { dense->forward(context, x, w, {}, y, workspace); });
  return 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n) / seconds;
}

double operations(Context& context, Precision precision) {
  if (context.device() == Device::cpu) {
    // A slow or emulated CPU would take minutes for large matrices.
    constexpr double kSlow = 2e9;
    const double small = operations(context, precision, 384);
    if (small < kSlow) return small;
  }
  return operations(context, precision, size_for(context, 1536, 8192, 4096));
}

double bytes(Context& context) {
  const int64_t n = size_for(context, 1 << 25, 1 << 27, 1 << 25);
  const Tensor x = filled(context, {n}, DType::f32), y = filled(context, {n}, DType::f32);
  const double seconds = fastest(context, [&] { add_to(context, x, y); });
  return 3 * static_cast<double>(x.bytes()) / seconds;  // both are read, one is written
}

}  // namespace

Limits measure_limits(Context& context, Precision precision) {
  const Limits limits{operations(context, precision), bytes(context)};
  context.end_tuning();
  return limits;
}

}  // namespace crema
