/* The gradient of a convolution's input. `row` has room for taps + outputs floats.
   needs: conv_gradient matmul_block */

/* Adds what the taps of a filter read at a position, the other way round. */
static void scatter_taps(float *x, const float *from, int32_t at, const struct conv_gradient *s) {
  const int32_t *const in = s->window.in, *const out = s->window.out;
  const int32_t *const kernel = s->window.kernel, *const dilation = s->window.dilation;
  const int32_t z = at / (out[2] * out[1]) * s->window.stride[0] - s->window.pad[0];
  const int32_t y = at / out[2] % out[1] * s->window.stride[1] - s->window.pad[1];
  const int32_t ix = at % out[2] * s->window.stride[2] - s->window.pad[2];
  const int32_t lines = kernel[0] * kernel[1];
  for (int32_t line = 0; line < s->channels * lines; ++line, from += kernel[2]) {
    const int32_t iz = z + line % lines / kernel[1] * dilation[0];
    const int32_t iy = y + line % kernel[1] * dilation[1];
    if (iz < 0 || iz >= in[0] || iy < 0 || iy >= in[1]) continue;
    float *const to = x + ((size_t)(line / lines * in[0] + iz) * in[1] + iy) * in[2];
    for (int32_t kx = 0; kx < kernel[2]; ++kx) {
      const int32_t column = ix + kx * dilation[2];
      if (column >= 0 && column < in[2]) to[column] += from[kx];
    }
  }
}

static void conv_input_gradient(float *to, const float *dy, const float *weights, float *row,
                                const struct conv_gradient *s) {
  const int32_t *const in = s->window.in, *const out = s->window.out;
  const int32_t positions = out[0] * out[1] * out[2], taps = s->taps;
  const size_t image = (size_t)in[0] * in[1] * in[2] * s->channels;
  float *const column = row + taps;
  memset(to, 0, (size_t)s->samples * s->groups * image * sizeof(float));
  for (int32_t part = 0; part < s->samples * s->groups; ++part) {
    const float *const w = weights + (size_t)(part % s->groups) * s->outputs * taps;
    const float *const d = dy + (size_t)part * s->outputs * positions;
    for (int32_t at = 0; at < positions; ++at) {
      for (int32_t o = 0; o < s->outputs; ++o) column[o] = d[(size_t)o * positions + at];
      memset(row, 0, taps * sizeof(float));
      matmul_block(row, column, w, s->outputs, taps, taps);
      scatter_taps(to + part * image, row, at, s);
    }
  }
}
