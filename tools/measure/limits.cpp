#include "tools/measure/limits.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <limits>

#include "base/random.h"
#include "device/device_scope.h"
#include "device/stopwatch.h"
#include "kernels/conv/dense.h"
#include "kernels/move/reorder.h"
#include "kernels/pointwise/add.h"

namespace crema {

namespace {

constexpr int kTimes = 5;
// A GPU is measured with large sizes if this much of its memory is free.
constexpr size_t kMemory = size_t{4} << 30;

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

// The shortest time of several runs, in seconds. Other programs on a CPU disturb some of them, so it
// repeats them for as long as `patience` says.
double fastest(Context& context, double patience, const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(patience);
  Stopwatch watch(context);
  work();
  double least = std::numeric_limits<double>::infinity();
  do {
    for (int i = 0; i <= kTimes; ++i) {
      watch.mark();
      if (i < kTimes) work();
    }
    const std::vector<double> laps = watch.laps();
    least = std::min(least, *std::min_element(laps.begin(), laps.end()));
  } while (context.device() == Device::cpu && Clock::now() < end);
  return 1e-3 * least;
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
  const double seconds =
      fastest(context, 0.3, [&] { dense->forward(context, x, w, {}, y, workspace); });
  return 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n) / seconds;
}

// Of sums of vectors of all powers of two: both are read, one is written.
std::vector<Limits::Bandwidth> bandwidths(Context& context, int64_t most) {
  constexpr int64_t kLeast = 1 << 13, kAtOnce = 1 << 20;  // elements
  const Tensor x = filled(context, {most}, DType::f32), y = filled(context, {most}, DType::f32);
  std::vector<Limits::Bandwidth> found;
  for (int64_t n = kLeast; n <= most; n *= 2) {
    const Tensor from(x.memory(), 0, {n}, DType::f32), to(y.memory(), 0, {n}, DType::f32);
    const int64_t times = std::max<int64_t>(1, kAtOnce / n);
    const double seconds = fastest(context, 0.03, [&] {
      for (int64_t i = 0; i < times; ++i) add_to(context, from, to);
    });
    const double amount = 3 * static_cast<double>(from.bytes());
    found.push_back({amount, amount * static_cast<double>(times) / seconds});
  }
  return found;
}

// Each thread computes by itself, all at the same time: where other programs run, too, a thread is
// undisturbed for a while more often than all of them at once.
Limits limits_of_cpu(Precision precision) {
  const int threads = cpu_threads();
  std::vector<std::future<Limits>> parts;
  for (int i = 0; i < threads; ++i) {
    parts.push_back(std::async(std::launch::async, [precision, threads] {
      Context alone(Device::cpu);
      set_cpu_threads(1);
      // All of them together need more than the caches hold.
      int64_t most = 1 << 25;
      while (most > (1 << 21) && most * threads > (1 << 25)) most /= 2;
      Limits part;
      part.operations = operations(alone, precision, 384);
      part.bandwidths = bandwidths(alone, most);
      return part;
    }));
  }
  Limits sum = parts[0].get();
  for (size_t i = 1; i < parts.size(); ++i) {
    const Limits part = parts[i].get();
    sum.operations += part.operations;
    for (size_t k = 0; k < sum.bandwidths.size(); ++k) {
      sum.bandwidths[k].amount += part.bandwidths[k].amount;
      sum.bandwidths[k].bytes += part.bandwidths[k].bytes;
    }
  }
  return sum;
}

}  // namespace

// Less is never slower: where it seems to be, starting the loop takes most of the time.
double Limits::bytes_for(double amount) const {
  double best = bytes;
  for (const Bandwidth& measured : bandwidths) best = std::max(best, measured.bytes);
  const double of_caches = std::sqrt(best * bytes);
  double rate = bytes;
  for (const Bandwidth& measured : bandwidths) {
    if (measured.amount >= amount && measured.bytes >= of_caches)
      rate = std::max(rate, measured.bytes);
  }
  return rate;
}

Limits measure_limits(Context& context, Precision precision) {
  Limits limits;
  if (context.device() == Device::cpu) {
    limits = limits_of_cpu(precision);
  } else {
    const bool large = free_memory(context) > kMemory;
    limits.operations = operations(context, precision, large ? 8192 : 4096);
    limits.bandwidths = bandwidths(context, large ? 1 << 27 : 1 << 25);
  }
  limits.bytes = limits.bandwidths.back().bytes;
  context.end_tuning();
  return limits;
}

Roofline roofline_of(const Work& work, const Limits& limits) {
  const double arithmetic = work.executed / limits.operations,
               memory = work.bytes / limits.bytes_for(work.bytes);
  return {std::max(arithmetic, memory), arithmetic > memory};
}

}  // namespace crema
