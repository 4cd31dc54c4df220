#include "kernels/optim/weights_hash.h"

#include <algorithm>
#include <type_traits>

#include "base/ceil_div.h"
#include "device/parallel.h"
#include "tensor/on.h"

namespace crema {
namespace {

// How memory is laid out: (outer, points, stored), of which `channels` of `stored` are values. In
// row-major order they are (outer, channels, points).
struct HashedLayout {
  int64_t points = 1, channels = 1, stored = 1;
};

HashedLayout hashed_layout(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  const Format& format = tensor.format();
  if (format.points > 0) {
    const int64_t channels = shape[1] / format.points;
    return {format.points, channels, channels};
  }
  if (format.order == Order::channels_last && shape.axes() >= 3)
    return {shape.count(2), shape[1], format.channels > 0 ? format.channels : shape[1]};
  return {};
}

// A bijection of 64 bits in which each bit of the input changes about half of the output (the
// finalizer of SplitMix64). So two tensors that differ in one value always have different sums, and
// others with a probability of 2^-64 the same.
CREMA_HD inline uint64_t mixed(uint64_t bits, int64_t position) {
  uint64_t x = bits + (static_cast<uint64_t>(position) + 1) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Word: an integer of the size of a value.
template <typename Word>
struct HashedValues {
  const Word* values;
  HashedLayout layout;
  CREMA_HD uint64_t operator()(int64_t at) const {
    if (layout.stored == 1) return mixed(values[at], at);
    const int64_t channel = at % layout.stored, row = at / layout.stored;
    const int64_t point = row % layout.points, outer = row / layout.points;
    if (channel >= layout.channels) return 0;  // padding
    return mixed(values[at], (outer * layout.channels + channel) * layout.points + point);
  }
};

#ifdef __CUDACC__
constexpr int64_t kWarp = 32, kHashThreads = int64_t{1} << 16;

// A sum of integers: warps may add theirs in any order. Its threads are whole warps.
template <typename Word>
struct AddHashes {
  HashedValues<Word> hashed;
  int64_t count, threads;
  unsigned long long* sum;
  CREMA_HD void operator()(int64_t thread) const {
    uint64_t own = 0;
    for (int64_t at = thread; at < count; at += threads) own += hashed(at);
#ifdef __CUDA_ARCH__
    auto of_warp = static_cast<unsigned long long>(own);
    for (int lanes = kWarp / 2; lanes > 0; lanes /= 2)
      of_warp += __shfl_xor_sync(0xFFFFFFFFu, of_warp, lanes);
    if (thread % kWarp == 0) atomicAdd(sum, of_warp);
#endif
  }
};

std::vector<uint64_t> hashes_on_gpu(Context& context, std::span<const Tensor> tensors) {
  Gpu& gpu = context.gpu();
  constexpr size_t kAtATime = GpuStream::kPartialSums * sizeof(float) / sizeof(uint64_t);
  std::vector<uint64_t> hashes(tensors.size());
  for (size_t first = 0; first < tensors.size(); first += kAtATime) {
    const size_t many = std::min(kAtATime, tensors.size() - first);
    auto* const sums = reinterpret_cast<unsigned long long*>(gpu.partial_sums);
    zero_bytes(context, sums, Device::gpu, many * sizeof(uint64_t));
    for (size_t i = 0; i < many; ++i) {
      const Tensor& tensor = tensors[first + i];
      const int64_t count = tensor.elements(),
                    threads = std::min(ceil_div(count, kWarp) * kWarp, kHashThreads);
      on(tensor, [&]<typename T>() {
        using Word = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
        parallel_for(
            context, threads,
            AddHashes<Word>{{static_cast<const Word*>(tensor.raw()), hashed_layout(tensor)},
                            count,
                            threads,
                            sums + i});
      });
    }
    copy_bytes(context, hashes.data() + first, Device::cpu, sums, Device::gpu,
               many * sizeof(uint64_t));
  }
  return hashes;
}
#endif

// Like HashedValues, without a division for each value.
template <typename Word>
uint64_t hash_on_cpu(const void* memory, int64_t count, const HashedLayout& layout) {
  const auto* const values = static_cast<const Word*>(memory);
  uint64_t sum = 0;
  if (layout.stored == 1) {
#pragma omp parallel for simd schedule(static) reduction(+ : sum) if (count > 65536)
    for (int64_t at = 0; at < count; ++at) sum += mixed(values[at], at);
    return sum;
  }
  const int64_t rows = count / layout.stored;
#pragma omp parallel for schedule(static) reduction(+ : sum) if (count > 65536)
  for (int64_t row = 0; row < rows; ++row) {
    const Word* const pixel = values + row * layout.stored;
    const int64_t first = row / layout.points * layout.channels * layout.points,
                  point = row % layout.points;
    uint64_t of_row = 0;
#pragma omp simd reduction(+ : of_row)
    for (int64_t channel = 0; channel < layout.channels; ++channel)
      of_row += mixed(pixel[channel], first + channel * layout.points + point);
    sum += of_row;
  }
  return sum;
}

uint64_t hash_on_cpu(Context& context, const Tensor& tensor) {
  const bool blocked = tensor.format().order == Order::blocked;
  return on(tensor, [&]<typename T>() {
    using Word = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    if (!blocked) return hash_on_cpu<Word>(tensor.raw(), tensor.elements(), hashed_layout(tensor));
    if constexpr (sizeof(T) == 4)
      return hash_on_cpu<Word>(to_floats(context, tensor).data(), tensor.count(), {});
    return hash_on_cpu<Word>(to_doubles(context, tensor).data(), tensor.count(), {});
  });
}

}  // namespace

std::vector<uint64_t> weights_hashes(Context& context, std::span<const Tensor> tensors) {
#ifdef __CUDACC__
  if (context.device() == Device::gpu) return hashes_on_gpu(context, tensors);
#endif
  std::vector<uint64_t> hashes;
  for (const Tensor& tensor : tensors) hashes.push_back(hash_on_cpu(context, tensor));
  return hashes;
}

}  // namespace crema
