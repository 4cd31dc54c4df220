/* Transposed convolution: each value of x adds its multiple of a filter to y. In `window` x has the
   extents `out`, and y `in`. Weights have the axes input channel, output channel of the group, tap.
   needs: activate range */
struct conv_transpose {
  int32_t samples, groups, channels, outputs; /* channels and outputs: of one group */
  struct window window;
  struct activation activation;
};

static void conv_transpose(float *y, const float *x, const float *weights, const float *bias,
                           const struct conv_transpose *s) {
  const struct window *const window = &s->window;
  const int32_t *const in = window->in, *const out = window->out, *const kernel = window->kernel;
  const size_t image = (size_t)out[0] * out[1] * out[2], result = (size_t)in[0] * in[1] * in[2];
  const int32_t taps = kernel[0] * kernel[1] * kernel[2];
#ifdef _OPENMP
#pragma omp parallel for if ((double)s->outputs * s->channels * taps * image > 4e6)
#endif
  for (int32_t part = 0; part < s->samples * s->groups * s->outputs; ++part) {
    const int32_t output = part % s->outputs, group = part / s->outputs % s->groups;
    const float *const from = x + (size_t)(part / s->outputs) * s->channels * image;
    float *restrict const to = y + (size_t)part * result;
    const float start = bias ? bias[group * s->outputs + output] : 0;
    for (size_t i = 0; i < result; ++i) to[i] = start;
    for (int32_t c = 0; c < s->channels; ++c) {
      const float *const w =
          weights + ((size_t)(group * s->channels + c) * s->outputs + output) * taps;
      for (int32_t k = 0; k < taps; ++k) {
        int32_t x0, x1, y0, y1, z0, z1;
        const int32_t sx = inside(window, 2, k % kernel[2], &x0, &x1);
        const int32_t sy = inside(window, 1, k / kernel[2] % kernel[1], &y0, &y1);
        const int32_t sz = inside(window, 0, k / (kernel[2] * kernel[1]), &z0, &z1);
        for (int32_t z = z0; z < z1; ++z) {
          for (int32_t row = y0; row < y1; ++row) {
            const float *const values = from + c * image + ((size_t)z * out[1] + row) * out[2];
            const int32_t at = z * window->stride[0] + sz;
            float *restrict const sums =
                to + ((size_t)at * in[1] + row * window->stride[1] + sy) * in[2];
            for (int32_t i = x0; i < x1; ++i) sums[i * window->stride[2] + sx] += w[k] * values[i];
          }
        }
      }
    }
    activate(to, (int32_t)result, s->activation);
  }
}
