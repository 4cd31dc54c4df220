/* Convolution of 8-bit integers by filters with few taps: sums over these would be too short for vectors,
   so vectors go along positions. Weights have the order of layers. `memory` has room for
   (SUMMED + 4) * taps counts.
   needs: counts write_sums */
#define SUMMED 32 /* positions that are computed together */

/* Copies what a tap reads at `count` positions from `at` on. */
static void copy_tap(count_type *to, const uint8_t *x, int32_t tap, int32_t at, int32_t count,
                     const struct conv_int8 *s) {
  const int32_t *const in = s->window.in, *const out = s->window.out, flip = s->flip;
  const int32_t *const kernel = s->window.kernel, stride = s->window.stride[2];
  const int32_t plane = kernel[0] * kernel[1] * kernel[2], kx = tap % kernel[2];
  const int32_t z = tap % plane / (kernel[1] * kernel[2]) * s->window.dilation[0];
  const int32_t y = tap / kernel[2] % kernel[1] * s->window.dilation[1];
  int32_t px = at % out[2], line = at / out[2];
  for (int32_t i = 0, length; i < count; i += length, px = 0, ++line) {
    const int32_t iz = line / out[1] * s->window.stride[0] + z - s->window.pad[0];
    const int32_t iy = line % out[1] * s->window.stride[1] + y - s->window.pad[1];
    const int32_t ix = px * stride + kx * s->window.dilation[2] - s->window.pad[2];
    const uint8_t *const row =
        x + ((ptrdiff_t)(tap / plane * in[0] + iz) * in[1] + iy) * in[2] + ix;
    length = count - i < out[2] - px ? count - i : out[2] - px;
    if (iz < 0 || iz >= in[0] || iy < 0 || iy >= in[1]) {
      for (int32_t k = 0; k < length; ++k) put_count(to + i + k, 0);
    } else if (stride == 1 && ix >= 0 && ix + length <= in[2]) {
      for (int32_t k = 0; k < length; ++k) put_count(to + i + k, (row[k] ^ flip) - flip);
    } else {
      for (int32_t k = 0; k < length; ++k) {
        const int32_t column = ix + k * stride;
        put_count(to + i + k, column < 0 || column >= in[2] ? 0 : (row[k * stride] ^ flip) - flip);
      }
    }
  }
  for (int32_t i = count; i < SUMMED; ++i) put_count(to + i, 0);
}

/* The sums of four filters, of which `w` has a row each, at 2 * LANES positions. */
static void sum_taps(int32_t *sums, const count_type *x, const count_type *w, int32_t taps) {
  count_type parts[2 * LANES];
  for (int32_t i = 0; i < 2 * LANES; ++i) parts[i] = 0;
  counts a = load_counts(parts), b = a, c = a, d = a, e = a, f = a, g = a, h = a;
  for (int32_t tap = 0; tap < taps; ++tap, x += SUMMED, ++w) {
    counts p = load_counts(x), q = load_counts(x + LANES);
    KEEP(p);
    KEEP(q);
    a += w[0] * p, e += w[0] * q;
    b += w[taps] * p, f += w[taps] * q;
    c += w[2 * taps] * p, g += w[2 * taps] * q;
    d += w[3 * taps] * p, h += w[3 * taps] * q;
  }
  const counts all[8] = {a, e, b, f, c, g, d, h};
  for (int32_t row = 0; row < 4; ++row, sums += SUMMED) {
    memcpy(parts, all + 2 * row, sizeof parts);
    for (int32_t i = 0; i < 2 * LANES; ++i) sums[i] = (int32_t)parts[i];
  }
}

static void short_conv_int8(void *y, const void *x, const int8_t *weights, const int32_t *start,
                            const float *bias, const float *scale, void *memory,
                            const struct conv_int8 *s) {
  const struct window *const window = &s->window;
  const int32_t positions = window->out[0] * window->out[1] * window->out[2], taps = s->taps;
  const size_t size = (size_t)window->in[0] * window->in[1] * window->in[2] * s->channels;
  count_type *const patches = memory, *const w = patches + (size_t)SUMMED * taps;
  for (int32_t part = 0; part < s->samples * s->groups; ++part) {
    const uint8_t *const image = (const uint8_t *)x + part * size;
    for (int32_t at = 0; at < positions; at += SUMMED) {
      const int32_t count = positions - at < SUMMED ? positions - at : SUMMED;
      for (int32_t tap = 0; tap < taps; ++tap)
        copy_tap(patches + (size_t)tap * SUMMED, image, tap, at, count, s);
      for (int32_t o = 0; o < s->outputs; o += 4) {
        const int32_t first = part % s->groups * s->outputs + o;
        const int32_t rows = s->outputs - o < 4 ? s->outputs - o : 4;
        int32_t sums[4 * SUMMED];
        for (int32_t i = 0; i < rows * taps; ++i)
          put_count(w + i, weights[(size_t)first * taps + i]);
        for (int32_t i = rows * taps; i < 4 * taps; ++i) put_count(w + i, 0);
        for (int32_t i = 0; i < count; i += 2 * LANES)
          sum_taps(sums + i, patches + i, w, taps);
        for (int32_t row = 0; row < rows; ++row) {
          int32_t *const sum = sums + row * SUMMED;
          if (start)
            for (int32_t i = 0; i < count; ++i) sum[i] += start[first + row];
          write_sums(y, ((size_t)part * s->outputs + o + row) * positions + at, sum, count,
                     scale[(first + row) * s->scales], bias ? bias[first + row] : 0, &s->result);
        }
      }
    }
  }
}
