/* The mean of each window: of all its elements if `whole`, where padding counts as zeros, or of those
   inside the image.
   needs: range */
static void average_pool(float *y, const float *x, int32_t planes, int32_t whole,
                         const struct window *s) {
  const int32_t *const in = s->in, *const out = s->out, *const kernel = s->kernel;
  for (int32_t plane = 0; plane < planes; ++plane, x += (size_t)in[0] * in[1] * in[2]) {
    for (int32_t row = 0; row < out[0] * out[1]; ++row, y += out[2]) {
      float *restrict const sums = y;
      int32_t rows = 0, first, end;
      for (int32_t i = 0; i < out[2]; ++i) sums[i] = 0;
      for (int32_t k = 0; k < kernel[0] * kernel[1]; ++k) {
        const int32_t kz = k / kernel[1], ky = k % kernel[1];
        const int32_t iz = row / out[1] * s->stride[0] + kz * s->dilation[0] - s->pad[0];
        const int32_t iy = row % out[1] * s->stride[1] + ky * s->dilation[1] - s->pad[1];
        if (iz < 0 || iz >= in[0] || iy < 0 || iy >= in[1]) continue;
        ++rows;
        const float *const from = x + ((size_t)iz * in[1] + iy) * in[2];
        for (int32_t kx = 0; kx < kernel[2]; ++kx) {
          const int32_t shift = inside(s, 2, kx, &first, &end), stride = s->stride[2];
          for (int32_t i = first; i < end; ++i) sums[i] += from[i * stride + shift];
        }
      }
      for (int32_t i = 0; i < out[2]; ++i) {
        int32_t columns = 0;
        for (int32_t kx = 0; kx < kernel[2]; ++kx) {
          inside(s, 2, kx, &first, &end);
          columns += i >= first && i < end;
        }
        const int32_t count = whole ? kernel[0] * kernel[1] * kernel[2] : rows * columns;
        sums[i] /= (float)count;
      }
    }
  }
}
