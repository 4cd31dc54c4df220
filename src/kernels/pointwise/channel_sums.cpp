// Per-channel sums on the CPU: short runs are summed in the tensor's own type, so that loops
// vectorise, and the runs in double. The work is split by size alone, so that the result does not
// depend on the number of threads.
#include "kernels/pointwise/channel_sums.h"

#include <algorithm>
#include <vector>

#include "base/ceil_div.h"
#include "kernels/core/threads.h"
#include "kernels/pointwise/channel_narrow.h"
#include "kernels/pointwise/channel_terms.h"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr int64_t kSmall = 1 << 14;  // elements for which a second thread is not profitable

// Channels-last: splits the rows into pieces; all channels at once.
template <typename T, typename Term>
void sum_rows(const ChannelView& view, const Term& term, double* sums) {
  constexpr int64_t kRun = 64;  // rows summed in T
  const int64_t channels = view.channels;
  const int64_t pieces = std::clamp<int64_t>(view.outer / 256, 1, 64);
  std::vector<double> partial(view.groups * pieces * 2 * channels);
  RegionError error;
#pragma omp parallel if (view.count() > kSmall)
  {
    const Term local = term;  // a copy that no store can alias, so that the loop vectorises
    std::vector<T> run;
    error.run([&] { run.resize(2 * channels); });
    T *first = run.data(), *second = first + channels;
#pragma omp for schedule(static)
    for (int64_t task = 0; task < view.groups * pieces; ++task) {
      if (!first) continue;
      const int64_t group = task / pieces, piece = task % pieces;
      const int64_t begin = view.outer * piece / pieces, end = view.outer * (piece + 1) / pieces;
      double* total = partial.data() + task * 2 * channels;
      for (int64_t row = begin; row < end; row += kRun) {
        std::fill(run.begin(), run.end(), T(0));
        for (int64_t r = row; r < std::min(end, row + kRun); ++r) {
          const int64_t at = (group * view.outer + r) * channels, value = group * channels;
#pragma omp simd
          for (int64_t c = 0; c < channels; ++c) {
            T g, h;
            local(at + c, value + c, g, h);
            first[c] += g;
            second[c] += g * h;
          }
        }
        for (int64_t c = 0; c < 2 * channels; ++c) total[c] += run[c];
      }
    }
  }
  error.rethrow();
  for (int64_t group = 0; group < view.groups; ++group) {
    for (int64_t c = 0; c < 2 * channels; ++c) {
      double total = 0;
      for (int64_t piece = 0; piece < pieces; ++piece)
        total += partial[(group * pieces + piece) * 2 * channels + c];
      sums[c < channels ? group * channels + c : view.values() + group * channels + c - channels] =
          total;
    }
  }
}

// Row-major: channel by channel, or in pieces of its contiguous runs where there are few channels.
template <typename T, typename Term>
void sum_planes(const ChannelView& view, const Term& term, double* sums) {
  constexpr int64_t kRun = 4096;
  const int64_t runs_each = ceil_div(view.inner, kRun), runs = view.outer * runs_each,
                values = view.values();
  const int64_t pieces = std::clamp<int64_t>(64 / values, 1, runs);
  std::vector<double> partial(2 * values * pieces);
#pragma omp parallel for schedule(static) if (view.count() > kSmall)
  for (int64_t task = 0; task < values * pieces; ++task) {
    const int64_t value = task / pieces, piece = task % pieces;
    const int64_t group = value / view.channels, channel = value % view.channels;
    const Term local = term;
    double first = 0, second = 0;
    for (int64_t run = runs * piece / pieces; run < runs * (piece + 1) / pieces; ++run) {
      const int64_t plane = (group * view.outer + run / runs_each) * view.channels + channel;
      const int64_t begin = run % runs_each * kRun, end = std::min(view.inner, begin + kRun);
      T a = 0, b = 0;
#pragma omp simd reduction(+ : a, b)
      for (int64_t i = begin; i < end; ++i) {
        T g, h;
        local(plane * view.inner + i, value, g, h);
        a += g;
        b += g * h;
      }
      first += a;
      second += b;
    }
    partial[task] = first;
    partial[values * pieces + task] = second;
  }
  for (int64_t i = 0; i < 2 * values; ++i) {
    sums[i] = 0;
    for (int64_t piece = 0; piece < pieces; ++piece) sums[i] += partial[i * pieces + piece];
  }
}

void sum_narrow(Context& context, const ChannelView& view, const ChannelTerm& of,
                const Tensor& masked, double* sums) {
  const NarrowChannels narrow(view);
  std::vector<double> wide(2 * narrow.wide.channels), rest(2 * view.channels);
  channel_sums(context, narrow.wide, narrow.wide_term(context, of), masked, wide.data(), nullptr);
  if (narrow.rest.outer > 0) {
    channel_sums(context, narrow.rest, narrow.rest_term(of), narrow.tail(masked), rest.data(),
                 nullptr);
  }
  for (int64_t i = 0; i < 2 * view.channels; ++i) {
    const int64_t first = i / view.channels * narrow.wide.channels + i % view.channels;
    sums[i] = rest[i];
    for (int64_t k = 0; k < narrow.copies; ++k) sums[i] += wide[first + k * view.channels];
  }
}

}  // namespace

void channel_sums(Context& context, const ChannelView& view, const ChannelTerm& of,
                  const Tensor& masked, double* sums, void* scratch) {
  if (context.device() == Device::gpu)
    return channel_sums_gpu(context, view, of, masked, sums, scratch);
  if (NarrowChannels::helps(context, view)) return sum_narrow(context, view, of, masked, sums);
  on(of.dy ? of.dy : of.x, [&]<typename T>() {
    with_term<T>(of, masked, [&](const auto& term) {
      view.inner == 1 ? sum_rows<T>(view, term, sums) : sum_planes<T>(view, term, sums);
    });
  });
}

void channel_statistics(Context& context, const ChannelView& view, const Tensor& x,
                        const Tensor& center, double* sums, void* scratch) {
  ChannelTerm of;
  of.x = x;
  of.center = center;
  channel_sums(context, view, of, {}, sums, scratch);
}

}  // namespace crema
