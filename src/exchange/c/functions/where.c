/* y = a or b, whichever the condition c says, element by element.
   needs: walk */
#define WHERE(name, type)                                                           \
  static void name(type *y, const int32_t *condition, const type *x, const type *z, \
                   const struct walk *s) {                                          \
    int32_t at[AXES] = {0};                                                         \
    const int32_t count = s->extent[AXES - 1];                                      \
    const int32_t sa = s->a[AXES - 1], sb = s->b[AXES - 1], sc = s->c[AXES - 1];    \
    ptrdiff_t a = 0, b = 0, c = 0;                                                  \
    do {                                                                            \
      for (int32_t i = 0; i < count; ++i)                                           \
        y[i] = condition[c + i * sc] ? x[a + i * sa] : z[b + i * sb];               \
      y += count;                                                                   \
    } while (next_row(s, at, &a, &b, &c));                                          \
  }
