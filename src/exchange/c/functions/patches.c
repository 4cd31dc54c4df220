/* Copies what `some` taps read at `count` positions from `at` on into rows of 16.
   needs: window */
static void copy_patches(const float *x, float *to, const struct window *s, int32_t at,
                         int32_t count, int32_t first, int32_t some) {
  const int32_t *const in = s->in, *const out = s->out;
  const int32_t x0 = at % out[2], y0 = at / out[2] % out[1], z0 = at / (out[2] * out[1]);
  int32_t kx = first % s->kernel[2];
  int32_t ky = first / s->kernel[2] % s->kernel[1];
  int32_t kz = first / (s->kernel[2] * s->kernel[1]) % s->kernel[0];
  x += (size_t)(first / (s->kernel[2] * s->kernel[1] * s->kernel[0])) * in[0] * in[1] * in[2];
  for (int32_t tap = 0; tap < some; ++tap, to += 16) {
    int32_t px = x0, py = y0, pz = z0;
    for (int32_t i = 0; i < count;) {
      const int32_t length = count - i < out[2] - px ? count - i : out[2] - px;
      const int32_t iz = pz * s->stride[0] + kz * s->dilation[0] - s->pad[0];
      const int32_t iy = py * s->stride[1] + ky * s->dilation[1] - s->pad[1];
      const int32_t ix = px * s->stride[2] + kx * s->dilation[2] - s->pad[2];
      if (iz < 0 || iz >= in[0] || iy < 0 || iy >= in[1]) {
        for (int32_t k = 0; k < length; ++k) to[i + k] = 0;
      } else {
        const float *const row = x + ((size_t)iz * in[1] + iy) * in[2];
        for (int32_t k = 0; k < length; ++k) {
          const int32_t column = ix + k * s->stride[2];
          to[i + k] = column < 0 || column >= in[2] ? 0 : row[column];
        }
      }
      i += length;
      px = 0;
      if (++py == out[1]) py = 0, ++pz;
    }
    for (int32_t i = count; i < 16; ++i) to[i] = 0;
    if (++kx < s->kernel[2]) continue;
    kx = 0;
    if (++ky < s->kernel[1]) continue;
    ky = 0;
    if (++kz < s->kernel[0]) continue;
    kz = 0;
    x += (size_t)in[0] * in[1] * in[2];
  }
}
