#include "kernels/move/gather.h"

#include <cmath>
#include <type_traits>

#include "kernels/core/divisor.h"
#include "kernels/pointwise/pointwise.h"

namespace crema {
namespace {

// Indices have at least 32 bits even where the entries have 16.
template <typename T>
using IndexOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename T>
struct GatherBody {
  GatherExtent e;
  const T* x;
  const IndexOf<T>* index;
  T* y;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t entry = static_cast<int64_t>(index[row % e.picks]);
    y[row * e.inner + column] = entry >= 0 && entry < e.entries
                                    ? x[(row / e.picks * e.entries + entry) * e.inner + column]
                                    : T(NAN);
  }
};

// The same for 16 bytes at a time, on the GPU; inner counts packs.
template <typename T>
struct GatherPacks {
  GatherExtent e;
  Divisor inner, picks;
  const WidePack<T>* x;
  const IndexOf<T>* index;
  WidePack<T>* y;
  CREMA_HD void operator()(int64_t i) const {
    uint32_t column = static_cast<uint32_t>(i), pick = inner.split(column);
    const int64_t outer = picks.split(pick), entry = static_cast<int64_t>(index[pick]);
    WidePack<T> p;
    if (entry >= 0 && entry < e.entries) {
      p = x[(outer * e.entries + entry) * inner.value + column];
    } else {
      for (T& value : p.v) value = T(NAN);
    }
    y[i] = p;
  }
};

// Linked lists of the picks of each entry: first[entry], then next[pick] repeatedly; -1 ends a
// list. Item i < entries is an entry, the others are picks.
template <typename T>
struct ChainBody {
  GatherExtent e;
  const T* index;
  int32_t *first, *next;
  CREMA_HD void operator()(int64_t i) const {
    const bool entry = i < e.entries;
    const T wanted = entry ? static_cast<T>(i) : std::trunc(index[i - e.entries]);
    int64_t pick = entry ? 0 : i - e.entries + 1;
    // Cuts off fractions as the forward pass does.
    while (pick < e.picks && std::trunc(index[pick]) != wanted) ++pick;
    (entry ? first[i] : next[i - e.entries]) =
        pick < e.picks ? static_cast<int32_t>(pick) : int32_t{-1};
  }
};

template <typename T>
struct GatherGradient {
  GatherExtent e;
  const int32_t *first, *next;
  const T* dy;
  T* dx;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t outer = row / e.entries;
    Compute<T> sum = 0;
    for (int32_t pick = first[row % e.entries]; pick >= 0; pick = next[pick])
      sum += Compute<T>(dy[(outer * e.picks + pick) * e.inner + column]);
    dx[row * e.inner + column] = sum;
  }
};

template <typename T>
struct GatherPacksGradient {
  GatherExtent e;
  Divisor inner, entries;
  const int32_t *first, *next;
  const WidePack<T>* dy;
  WidePack<T>* dx;
  CREMA_HD void operator()(int64_t i) const {
    uint32_t column = static_cast<uint32_t>(i), entry = inner.split(column);
    const int64_t outer = entries.split(entry);
    Compute<T> sums[kPackCount<T>] = {};
    for (int32_t pick = first[entry]; pick >= 0; pick = next[pick]) {
      const WidePack<T> p = dy[(outer * e.picks + pick) * inner.value + column];
      for (int k = 0; k < kPackCount<T>; ++k) sums[k] += Compute<T>(p.v[k]);
    }
    WidePack<T> p;
    for (int k = 0; k < kPackCount<T>; ++k) p.v[k] = sums[k];
    dx[i] = p;
  }
};

bool picks_in_packs(Context& context, const GatherExtent& e, const Tensor& x, const Tensor& y) {
  const int64_t in_pack = 16 / static_cast<int64_t>(size_of(x.dtype()));
  return context.device() == Device::gpu && e.inner % in_pack == 0 &&
         takes_packs<char>(0, x.raw(), y.raw()) && std::max(x.count(), y.count()) < Divisor::kMax;
}

}  // namespace

void gather(Context& context, const GatherExtent& extent, const Tensor& x, const Tensor& index,
            const Tensor& y) {
  on_real(y, [&]<typename T>() {
    const auto* numbers = index.data<IndexOf<T>>();
    if (context.device() == Device::cpu) {
      for (int64_t i = 0; i < extent.picks; ++i) {
        const IndexOf<T> entry = numbers[i];
        require(entry >= 0 && entry < extent.entries, "index ", i, " of the second bottom is ",
                entry, ", but must name one of the ", extent.entries, " entries, 0 to ",
                extent.entries - 1);
      }
    }
    if (picks_in_packs(context, extent, x, y)) {
      using P = WidePack<T>;
      parallel_for(context, y.count() / kPackCount<T>,
                   GatherPacks<T>{extent, Divisor(extent.inner / kPackCount<T>),
                                  Divisor(extent.picks), x.data<P>(), numbers, y.data<P>()});
    } else {
      parallel_rows(context, extent.outer * extent.picks, extent.inner,
                    GatherBody<T>{extent, x.data<T>(), numbers, y.data<T>()});
    }
  });
}

void gather_gradient(Context& context, const GatherExtent& extent, const Tensor& index,
                     const Tensor& dy, const Tensor& scratch, const Tensor& dx) {
  on_real(dx, [&]<typename T>() {
    int32_t *first = scratch.data<int32_t>(), *next = first + extent.entries;
    parallel_for(context, extent.scratch(),
                 ChainBody<IndexOf<T>>{extent, index.data<IndexOf<T>>(), first, next});
    if (picks_in_packs(context, extent, dy, dx)) {
      using P = WidePack<T>;
      parallel_for(
          context, dx.count() / kPackCount<T>,
          GatherPacksGradient<T>{extent, Divisor(extent.inner / kPackCount<T>),
                                 Divisor(extent.entries), first, next, dy.data<P>(), dx.data<P>()});
    } else {
      parallel_rows(context, extent.outer * extent.entries, extent.inner,
                    GatherGradient<T>{extent, first, next, dy.data<T>(), dx.data<T>()});
    }
  });
}

}  // namespace crema
