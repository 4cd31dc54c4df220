/* Integers of 8 bits: x / step, rounded, with halves to the even integer; and back. */
#define QUANTIZE(name, type, low, high)                                  \
  static void name(type *y, const float *x, int32_t count, float step) { \
    for (int32_t i = 0; i < count; ++i) {                                \
      const float n = x[i] / step, above = n > low ? n : low;            \
      y[i] = (type)rintf(above < high ? above : high);                   \
    }                                                                    \
  }
#define DEQUANTIZE(name, type)                                           \
  static void name(float *y, const type *x, int32_t count, float step) { \
    for (int32_t i = 0; i < count; ++i) y[i] = x[i] * step;              \
  }
