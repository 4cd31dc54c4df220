// Explicit CPU vectors for kernels whose inner loop runs over channels. Uses GCC's and Clang's
// vector extension, so one source covers every instruction set.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX512BW__) && defined(__AVX512VL__)
#include <immintrin.h>
#endif

namespace crema {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <typename T>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

template <typename T, int N = kLanes<T>>
struct VectorOf {
  using type __attribute__((vector_size(N * sizeof(T)))) = T;
};
template <typename T, int N = kLanes<T>>
using Vector = typename VectorOf<T, N>::type;

// The integers as wide as T that comparisons of T return: all ones for true.
template <typename T>
struct MaskOf;
template <>
struct MaskOf<float> {
  using type = int32_t;
};
template <>
struct MaskOf<double> {
  using type = int64_t;
};
template <typename T>
using Mask = Vector<typename MaskOf<T>::type, kLanes<T>>;

// From and to memory of any alignment.
template <typename V, typename T>
inline V load(const T* from) {
  V v;
  std::memcpy(&v, from, sizeof(V));
  return v;
}
template <typename V, typename T>
inline void store(const V& v, T* to) {
  std::memcpy(to, &v, sizeof(V));
}

// Converts integers of 1, 2, 4 or 8 bytes to another width by halving or doubling: compilers
// vectorise such single steps and convert element by element in larger ones.
template <int kBytes>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using type = uint8_t;
};
template <>
struct UnsignedOf<2> {
  using type = uint16_t;
};
template <>
struct UnsignedOf<4> {
  using type = uint32_t;
};
template <>
struct UnsignedOf<8> {
  using type = uint64_t;
};

template <typename To, typename From, int N = kLanes<float>>
inline Vector<To, N> resize(const Vector<From, N>& v) {
  if constexpr (sizeof(To) > 2 * sizeof(From)) {
    using Step = typename UnsignedOf<2 * sizeof(From)>::type;
    return resize<To, Step, N>(__builtin_convertvector(v, Vector<Step, N>));
  } else if constexpr (2 * sizeof(To) < sizeof(From)) {
    using Step = typename UnsignedOf<sizeof(From) / 2>::type;
    return resize<To, Step, N>(__builtin_convertvector(v, Vector<Step, N>));
  } else {
    return __builtin_convertvector(v, Vector<To, N>);
  }
}

// values[i] where index[i] is `cell`, else 0.
template <typename T, typename Index>
inline Vector<T> where_equal(const Index* index, int32_t cell, const T* values) {
  const auto indexes =
      resize<typename MaskOf<T>::type, Index, kLanes<T>>(load<Vector<Index, kLanes<T>>>(index));
  return indexes == Mask<T>{} + cell ? load<Vector<T>>(values) : Vector<T>{};
}
#if defined(__AVX512BW__) && defined(__AVX512VL__)
// Two instructions where the vector extension takes a dozen.
inline Vector<float> where_equal(const uint8_t* index, int32_t cell, const float* values) {
  const __m128i indexes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(index));
  return _mm512_maskz_loadu_ps(_mm_cmpeq_epi8_mask(indexes, _mm_set1_epi8(static_cast<char>(cell))),
                               values);
}
#endif

// Transposes kLanes rows of kLanes elements. Step s exchanges off-diagonal s x s blocks.
template <typename T>
inline void transpose(Vector<T>* rows) {
  constexpr int n = kLanes<T>;
#pragma GCC unroll 4
  for (int s = 1; s < n; s *= 2) {
    Mask<T> low, high;
    for (int j = 0; j < n; ++j) {
      low[j] = j & s ? n + j - s : j;
      high[j] = j & s ? n + j : j + s;
    }
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) {
      if (i & s) continue;
      const Vector<T> a = rows[i], b = rows[i + s];
#ifdef __clang__  // which has no shuffle by a vector
      for (int j = 0; j < n; ++j) {
        rows[i][j] = low[j] < n ? a[low[j]] : b[low[j] - n];
        rows[i + s][j] = high[j] < n ? a[high[j]] : b[high[j] - n];
      }
#else
      rows[i] = __builtin_shuffle(a, b, low);
      rows[i + s] = __builtin_shuffle(a, b, high);
#endif
    }
  }
}

}  // namespace crema
