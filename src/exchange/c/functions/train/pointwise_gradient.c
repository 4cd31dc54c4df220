/* to = expression of dy, its gradient, and y, a value of the forward pass, with the setting p.
   needs: independent */
#define POINTWISE_GRADIENT(name, expression)                                                      \
  static void name(float *to, const float *gradient, const float *from, int32_t count, float p) { \
    (void)p;                                                                                      \
    INDEPENDENT for (int32_t i = 0; i < count; ++i) {                                             \
      const float dy = gradient[i], y = from[i];                                                  \
      to[i] = expression;                                                                         \
    }                                                                                             \
  }
