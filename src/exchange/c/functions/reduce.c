/* Joins elements: `a` steps through x, and `b`, through y, is 0 along the axes that vanish. Each result
   begins as `start`; finish: what becomes of it, v, at the end, with n, the number of its elements.
   needs: walk */
#define REDUCE(name, start, map, join, finish)                                                    \
  static void name(float *y, const float *from, int32_t results, float n, const struct walk *s) { \
    int32_t at[AXES] = {0};                                                                       \
    const int32_t count = s->extent[AXES - 1], step = s->a[AXES - 1], to = s->b[AXES - 1];        \
    ptrdiff_t a = 0, b = 0, unused = 0;                                                           \
    (void)n;                                                                                      \
    for (int32_t i = 0; i < results; ++i) y[i] = start;                                           \
    do {                                                                                          \
      if (to == 0) {                                                                              \
        float v = start;                                                                          \
        for (int32_t i = 0; i < count; ++i) {                                                     \
          const float x = from[a + i * step], w = map;                                            \
          v = join;                                                                               \
        }                                                                                         \
        const float w = y[b];                                                                     \
        y[b] = join;                                                                              \
      } else {                                                                                    \
        for (int32_t i = 0; i < count; ++i) {                                                     \
          const float x = from[a + i * step], w = map, v = y[b + i * to];                         \
          y[b + i * to] = join;                                                                   \
        }                                                                                         \
      }                                                                                           \
    } while (next_row(s, at, &a, &b, &unused));                                                   \
    for (int32_t i = 0; i < results; ++i) {                                                       \
      const float v = y[i];                                                                       \
      y[i] = finish;                                                                              \
    }                                                                                             \
  }
