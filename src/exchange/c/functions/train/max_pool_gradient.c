/* The gradient of max_pool(): that of a window goes to its first largest value.
   needs: window */
static void max_pool_gradient(float *to, const float *dy, const float *x, int32_t planes,
                              const struct window *s) {
  const int32_t *const in = s->in, *const out = s->out, *const kernel = s->kernel;
  const int32_t size = in[0] * in[1] * in[2];
  memset(to, 0, (size_t)planes * size * sizeof(float));
  for (int32_t plane = 0; plane < planes; ++plane, x += size, to += size) {
    for (int32_t at = 0; at < out[0] * out[1] * out[2]; ++at) {
      const int32_t z = at / (out[2] * out[1]) * s->stride[0] - s->pad[0];
      const int32_t y = at / out[2] % out[1] * s->stride[1] - s->pad[1];
      const int32_t left = at % out[2] * s->stride[2] - s->pad[2];
      int32_t best = -1;
      for (int32_t line = 0; line < kernel[0] * kernel[1]; ++line) {
        const int32_t iz = z + line / kernel[1] * s->dilation[0];
        const int32_t iy = y + line % kernel[1] * s->dilation[1];
        if (iz < 0 || iz >= in[0] || iy < 0 || iy >= in[1]) continue;
        for (int32_t kx = 0; kx < kernel[2]; ++kx) {
          const int32_t ix = left + kx * s->dilation[2], here = (iz * in[1] + iy) * in[2] + ix;
          if (ix >= 0 && ix < in[2] && (best < 0 || x[here] > x[best])) best = here;
        }
      }
      if (best >= 0) to[best] += *dy;
      ++dy;
    }
  }
}
