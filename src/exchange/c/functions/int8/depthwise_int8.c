/* Convolution of 8-bit integers in each channel by itself, which `outputs` filters read.
   needs: range write_sums */
#define MOST_COLUMNS 16 /* of a filter */

static void depthwise_int8(void *y, const void *x, const int8_t *weights, const int32_t *start,
                           const float *bias, const float *scale, const struct conv_int8 *s) {
  const struct window *const window = &s->window;
  const int32_t *const in = window->in, *const out = window->out, *const kernel = window->kernel;
  const int32_t planes = s->groups * s->outputs, stride = window->stride[2], flip = s->flip;
  int32_t firsts[MOST_COLUMNS], ends[MOST_COLUMNS], shifts[MOST_COLUMNS];
  size_t to = 0;
  for (int32_t kx = 0; kx < kernel[2]; ++kx)
    shifts[kx] = inside(window, 2, kx, &firsts[kx], &ends[kx]);
  for (int32_t part = 0; part < s->samples * planes; ++part) {
    const int32_t plane = part % planes;
    const uint8_t *const image =
        (const uint8_t *)x + (size_t)(part / s->outputs) * in[0] * in[1] * in[2];
    for (int32_t row = 0; row < out[0] * out[1]; ++row) {
      for (int32_t at = 0; at < out[2]; at += MOST_SUMS) {
        const int32_t count = out[2] - at < MOST_SUMS ? out[2] - at : MOST_SUMS;
        const int8_t *w = weights + (size_t)plane * s->taps;
        int32_t sums[MOST_SUMS];
        for (int32_t i = 0; i < count; ++i) sums[i] = start ? start[plane] : 0;
        for (int32_t k = 0; k < kernel[0] * kernel[1]; ++k, w += kernel[2]) {
          const int32_t kz = k / kernel[1], ky = k % kernel[1];
          const int32_t iz = row / out[1] * window->stride[0] + kz * window->dilation[0];
          const int32_t iy = row % out[1] * window->stride[1] + ky * window->dilation[1];
          const int32_t pz = iz - window->pad[0], py = iy - window->pad[1];
          if (pz < 0 || pz >= in[0] || py < 0 || py >= in[1]) continue;
          const uint8_t *const from = image + ((size_t)pz * in[1] + py) * in[2];
          for (int32_t kx = 0; kx < kernel[2]; ++kx) {
            const int32_t first = firsts[kx] > at ? firsts[kx] - at : 0, v = w[kx];
            const int32_t end = ends[kx] - at < count ? ends[kx] - at : count;
            const ptrdiff_t begin = (ptrdiff_t)at * stride + shifts[kx];
            if (stride == 1)
              for (int32_t i = first; i < end; ++i)
                sums[i] += v * ((from[begin + i] ^ flip) - flip);
            else
              for (int32_t i = first; i < end; ++i)
                sums[i] += v * ((from[begin + i * stride] ^ flip) - flip);
          }
        }
        write_sums(y, to, sums, count, scale[plane * s->scales], bias ? bias[plane] : 0,
                   &s->result);
        to += count;
      }
    }
  }
}
