/* The gradient of a value that is one of a and b: dy where the condition says that it is this one. */
#define CHOOSE(name, condition)                                                                 \
  static void name(float *to, const float *dy, const float *x, const float *z, int32_t count) { \
    for (int32_t i = 0; i < count; ++i) {                                                       \
      const float a = x[i], b = z[i];                                                           \
      to[i] = condition ? dy[i] : 0;                                                            \
    }                                                                                           \
  }
