/* Copies elements in another order: `a` steps through x, `b` through y.
   needs: walk */
#define COPY(name, type)                                                                   \
  static void name(type *y, const type *x, const struct walk *s) {                         \
    int32_t at[AXES] = {0};                                                                \
    const int32_t count = s->extent[AXES - 1], from = s->a[AXES - 1], to = s->b[AXES - 1]; \
    ptrdiff_t a = 0, b = 0, c = 0;                                                         \
    do {                                                                                   \
      if (from == 1 && to == 1) {                                                          \
        memcpy(y + b, x + a, count * sizeof(type));                                        \
      } else {                                                                             \
        for (int32_t i = 0; i < count; ++i) y[b + i * to] = x[a + i * from];               \
      }                                                                                    \
    } while (next_row(s, at, &a, &b, &c));                                                 \
  }
