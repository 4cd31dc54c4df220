// Elements that a GPU thread loads and stores in one access.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "tensor/half.h"

namespace crema {

// kCount adjacent elements, aligned to all of their bytes.
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T v[kCount];
};

// Elements that fill 16 bytes, the widest access of a thread.
template <typename T>
inline constexpr int kPackCount = 16 / static_cast<int>(sizeof(T));

template <typename T>
using WidePack = Pack<T, kPackCount<T>>;

// Whether all pointers (null is fine) and `count` elements of T allow whole packs.
template <typename T, typename... Pointers>
bool takes_packs(int64_t count, const Pointers*... pointers) {
  return count % kPackCount<T> == 0 && ((reinterpret_cast<uintptr_t>(pointers) % 16 == 0) && ...);
}

}  // namespace crema
