/* y = expression of a and b, element by element. An operand's step is 0 along axes on which it has one
   element; y is contiguous.
   needs: independent walk */
#define BINARY(name, type, result, expression)                                      \
  static void name(result *y, const type *x, const type *z, const struct walk *s) { \
    int32_t at[AXES] = {0};                                                         \
    const int32_t count = s->extent[AXES - 1], step = s->a[AXES - 1];               \
    const int32_t other = s->b[AXES - 1];                                           \
    ptrdiff_t first = 0, second = 0, unused = 0;                                    \
    do {                                                                            \
      const type *const u = x + first, *const v = z + second;                       \
      if (step == 1 && other == 1) {                                                \
        INDEPENDENT for (int32_t i = 0; i < count; ++i) {                           \
          const type a = u[i], b = v[i];                                            \
          y[i] = expression;                                                        \
        }                                                                           \
      } else if (step == 1 && other == 0) {                                         \
        const type b = v[0];                                                        \
        INDEPENDENT for (int32_t i = 0; i < count; ++i) {                           \
          const type a = u[i];                                                      \
          y[i] = expression;                                                        \
        }                                                                           \
      } else {                                                                      \
        for (int32_t i = 0; i < count; ++i) {                                       \
          const type a = u[i * step], b = v[i * other];                             \
          y[i] = expression;                                                        \
        }                                                                           \
      }                                                                             \
      y += count;                                                                   \
    } while (next_row(s, at, &first, &second, &unused));                            \
  }
