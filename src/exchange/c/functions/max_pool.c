/* The largest value of each window; `lowest` for a window outside the image.
   needs: range */
#define MAX_POOL(name, type, lowest)                                                        \
  static void name(type *y, const type *x, int32_t planes, const struct window *s) {        \
    const int32_t *const in = s->in, *const out = s->out;                                   \
    for (int32_t plane = 0; plane < planes; ++plane, x += (size_t)in[0] * in[1] * in[2]) {  \
      for (int32_t row = 0; row < out[0] * out[1]; ++row, y += out[2]) {                    \
        type *restrict const largest = y;                                                   \
        for (int32_t i = 0; i < out[2]; ++i) largest[i] = lowest;                           \
        for (int32_t k = 0; k < s->kernel[0] * s->kernel[1]; ++k) {                         \
          const int32_t kz = k / s->kernel[1], ky = k % s->kernel[1];                       \
          const int32_t iz = row / out[1] * s->stride[0] + kz * s->dilation[0] - s->pad[0]; \
          const int32_t iy = row % out[1] * s->stride[1] + ky * s->dilation[1] - s->pad[1]; \
          if (iz < 0 || iz >= in[0] || iy < 0 || iy >= in[1]) continue;                     \
          const type *const from = x + ((size_t)iz * in[1] + iy) * in[2];                   \
          for (int32_t kx = 0; kx < s->kernel[2]; ++kx) {                                   \
            int32_t first, end;                                                             \
            const int32_t shift = inside(s, 2, kx, &first, &end), stride = s->stride[2];    \
            for (int32_t i = first; i < end; ++i) {                                         \
              const type v = from[i * stride + shift];                                      \
              largest[i] = v > largest[i] ? v : largest[i];                                 \
            }                                                                               \
          }                                                                                 \
        }                                                                                   \
      }                                                                                     \
    }                                                                                       \
  }
