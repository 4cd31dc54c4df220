/* y = expression of x and, in UNARY_OF, the settings p and q, element by element.
   needs: independent */
#define UNARY(name, type, result, expression)                    \
  static void name(result *y, const type *from, int32_t count) { \
    INDEPENDENT for (int32_t i = 0; i < count; ++i) {            \
      const type x = from[i];                                    \
      y[i] = (result)(expression);                               \
    }                                                            \
  }
#define UNARY_OF(name, expression)                                                 \
  static void name(float *y, const float *from, int32_t count, float p, float q) { \
    (void)q;                                                                       \
    INDEPENDENT for (int32_t i = 0; i < count; ++i) {                              \
      const float x = from[i];                                                     \
      y[i] = expression;                                                           \
    }                                                                              \
  }
