/* The same with the position of the largest value in x, the first of equal ones.
   needs: window */
static void max_pool_positions(float *y, int32_t *positions, const float *x, int32_t planes,
                               const struct window *s) {
  const int32_t *const in = s->in, *const out = s->out;
  for (int32_t i = 0; i < planes * out[0] * out[1] * out[2]; ++i) {
    const int32_t plane = i / (out[0] * out[1] * out[2]);
    float largest = -INFINITY;
    int32_t position = 0;
    for (int32_t k = 0; k < s->kernel[0] * s->kernel[1] * s->kernel[2]; ++k) {
      const int32_t kz = k / (s->kernel[1] * s->kernel[2]);
      const int32_t ky = k / s->kernel[2] % s->kernel[1], kx = k % s->kernel[2];
      const int32_t oz = i / (out[1] * out[2]) % out[0], oy = i / out[2] % out[1];
      const int32_t iz = oz * s->stride[0] + kz * s->dilation[0] - s->pad[0];
      const int32_t iy = oy * s->stride[1] + ky * s->dilation[1] - s->pad[1];
      const int32_t ix = i % out[2] * s->stride[2] + kx * s->dilation[2] - s->pad[2];
      if (iz < 0 || iz >= in[0] || iy < 0 || iy >= in[1] || ix < 0 || ix >= in[2]) continue;
      const int32_t at = ((plane * in[0] + iz) * in[1] + iy) * in[2] + ix;
      if (!(x[at] > largest)) continue;
      largest = x[at];
      position = at;
    }
    y[i] = largest;
    positions[i] = position;
  }
}
