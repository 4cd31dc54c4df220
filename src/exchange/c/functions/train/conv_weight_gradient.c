/* The gradient of a convolution's weights, in their own order. `rows` has room for GRADIENT_ROWS * taps
   floats.
   needs: conv_gradient matmul_block */

/* What the taps of a filter read at a position. */
static void gather_taps(float *to, const float *x, int32_t at, const struct conv_gradient *s) {
  const int32_t *const in = s->window.in, *const out = s->window.out;
  const int32_t *const kernel = s->window.kernel, *const dilation = s->window.dilation;
  const int32_t z = at / (out[2] * out[1]) * s->window.stride[0] - s->window.pad[0];
  const int32_t y = at / out[2] % out[1] * s->window.stride[1] - s->window.pad[1];
  const int32_t ix = at % out[2] * s->window.stride[2] - s->window.pad[2];
  const int32_t lines = kernel[0] * kernel[1];
  for (int32_t line = 0; line < s->channels * lines; ++line, to += kernel[2]) {
    const int32_t iz = z + line % lines / kernel[1] * dilation[0];
    const int32_t iy = y + line % kernel[1] * dilation[1];
    if (iz < 0 || iz >= in[0] || iy < 0 || iy >= in[1]) {
      for (int32_t kx = 0; kx < kernel[2]; ++kx) to[kx] = 0;
      continue;
    }
    const float *const from = x + ((size_t)(line / lines * in[0] + iz) * in[1] + iy) * in[2];
    for (int32_t kx = 0; kx < kernel[2]; ++kx) {
      const int32_t column = ix + kx * dilation[2];
      to[kx] = column < 0 || column >= in[2] ? 0 : from[column];
    }
  }
}

static void conv_weight_gradient(float *to, const float *dy, const float *x, float *rows,
                                 const struct conv_gradient *s) {
  const int32_t *const in = s->window.in, *const out = s->window.out;
  const int32_t positions = out[0] * out[1] * out[2], taps = s->taps;
  const size_t image = (size_t)in[0] * in[1] * in[2] * s->channels;
  memset(to, 0, (size_t)s->groups * s->outputs * taps * sizeof(float));
  for (int32_t part = 0; part < s->samples * s->groups; ++part) {
    float *const weights = to + (size_t)(part % s->groups) * s->outputs * taps;
    const float *const d = dy + (size_t)part * s->outputs * positions;
    for (int32_t at = 0; at < positions; at += GRADIENT_ROWS) {
      const int32_t count = positions - at < GRADIENT_ROWS ? positions - at : GRADIENT_ROWS;
      for (int32_t i = 0; i < count; ++i)
        gather_taps(rows + (size_t)i * taps, x + part * image, at + i, s);
      for (int32_t o = 0; o < s->outputs; ++o)
        matmul_block(weights + (size_t)o * taps, d + (size_t)o * positions + at, rows, count, taps,
                     taps);
    }
  }
}
