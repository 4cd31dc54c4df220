/* Convolution of 8-bit integers by filters with few taps: sums over these would be too short for vectors,
   so vectors go along positions. Weights have the order of layers. `memory` has room for
   (SUMMED + 4) * taps counts.
   needs: counts write_sums */
#define SUMMED 32 /* positions that are computed together */

/* Copies what a tap reads at `count` positions, of which `begin` is the first. x: the image of its channel;
   shift: the tap's place in the window. */
static void copy_tap(count_type *to, const uint8_t *x, const int32_t *shift, const int32_t *begin,
                     int32_t count, const struct conv_int8 *s) {
  const int32_t *const in = s->window.in, *const out = s->window.out, flip = s->flip;
  const int32_t *const stride = s->window.stride, *const dilation = s->window.dilation;
  int32_t oz = begin[0], oy = begin[1], ox = begin[2];
  for (int32_t i = 0, length; i < count; i += length, ox = 0) {
    const int32_t iz = oz * stride[0] + shift[0] * dilation[0] - s->window.pad[0];
    const int32_t iy = oy * stride[1] + shift[1] * dilation[1] - s->window.pad[1];
    const int32_t ix = ox * stride[2] + shift[2] * dilation[2] - s->window.pad[2];
    const uint8_t *const row = x + ((ptrdiff_t)iz * in[1] + iy) * in[2] + ix;
    length = count - i < out[2] - ox ? count - i : out[2] - ox;
    if (++oy == out[1]) oy = 0, ++oz;
    if (iz < 0 || iz >= in[0] || iy < 0 || iy >= in[1]) {
      memset(to + i, 0, length * sizeof(count_type));
    } else if (stride[2] == 1) {
      int32_t first = ix < 0 ? -ix : 0; /* [first, last) is inside */
      int32_t last = in[2] > ix ? in[2] - ix : 0;
      first = first < length ? first : length;
      last = last < length ? last : length;
      for (int32_t k = 0; k < first; ++k) put_count(to + i + k, 0);
      if (last > first) put_counts(to + i + first, row + first, last - first, flip);
      for (int32_t k = last; k < length; ++k) put_count(to + i + k, 0);
    } else {
      for (int32_t k = 0; k < length; ++k) {
        const int32_t column = ix + k * stride[2];
        put_count(to + i + k,
                  column < 0 || column >= in[2] ? 0 : (row[k * stride[2]] ^ flip) - flip);
      }
    }
  }
  for (int32_t i = count; i < SUMMED; ++i) put_count(to + i, 0);
}

/* Copies what all taps read at `count` positions from `at` on. */
static void copy_taps(count_type *to, const uint8_t *x, int32_t at, int32_t count,
                      const struct conv_int8 *s) {
  const int32_t *const in = s->window.in, *const out = s->window.out;
  const int32_t *const kernel = s->window.kernel, line = at / out[2];
  const int32_t begin[3] = {line / out[1], line % out[1], at % out[2]};
  const int32_t *const pad = s->window.pad, *const stride = s->window.stride;
  const size_t plane = (size_t)in[0] * in[1] * in[2];
  int32_t shift[3];
  if (s->taps == s->channels && memcmp(in, out, 3 * sizeof *in) == 0 &&
      pad[0] + pad[1] + pad[2] == 0 && stride[0] * stride[1] * stride[2] == 1) {
    for (int32_t c = 0; c < s->channels; ++c, x += plane, to += SUMMED) {
      put_counts(to, x + at, count, s->flip);
      for (int32_t i = count; i < SUMMED; ++i) put_count(to + i, 0);
    }
    return;
  }
  for (int32_t c = 0; c < s->channels; ++c, x += plane)
    for (shift[0] = 0; shift[0] < kernel[0]; ++shift[0])
      for (shift[1] = 0; shift[1] < kernel[1]; ++shift[1])
        for (shift[2] = 0; shift[2] < kernel[2]; ++shift[2], to += SUMMED)
          copy_tap(to, x, shift, begin, count, s);
}

/* Adds the sums of four filters, of which `w` has a row each, at 2 * LANES positions to `start`. */
static void sum_taps(int32_t *sums, const int32_t *start, const count_type *x, const count_type *w,
                     int32_t taps) {
  counts a;
  memset(&a, 0, sizeof a);
  counts b = a, c = a, d = a, e = a, f = a, g = a, h = a;
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
    store_counts(sums, all[2 * row], start[row]);
    store_counts(sums + LANES, all[2 * row + 1], start[row]);
  }
}

static void short_conv_int8(void *y, const void *x, const int8_t *weights, const int32_t *start,
                            const float *bias, const float *scale, void *memory,
                            const struct conv_int8 *s) {
  const struct window *const window = &s->window;
  const int32_t positions = window->out[0] * window->out[1] * window->out[2], taps = s->taps;
  const size_t size = (size_t)window->in[0] * window->in[1] * window->in[2] * s->channels;
  count_type *const patches = memory, *const w = patches + (size_t)SUMMED * taps;
  int32_t sums[4 * SUMMED] = {0};
  for (int32_t part = 0; part < s->samples * s->groups; ++part) {
    const uint8_t *const image = (const uint8_t *)x + part * size;
    for (int32_t at = 0; at < positions; at += SUMMED) {
      const int32_t count = positions - at < SUMMED ? positions - at : SUMMED;
      copy_taps(patches, image, at, count, s);
      for (int32_t o = 0; o < s->outputs; o += 4) {
        const int32_t first = part % s->groups * s->outputs + o;
        const int32_t rows = s->outputs - o < 4 ? s->outputs - o : 4;
        int32_t begin[4] = {0, 0, 0, 0};
        if (start) memcpy(begin, start + first, rows * sizeof *begin);
        put_counts(w, (const uint8_t *)weights + (size_t)first * taps, rows * taps, 128);
        if (rows < 4) memset(w + rows * taps, 0, (4 - rows) * taps * sizeof(count_type));
        for (int32_t i = 0; i < count; i += 2 * LANES)
          sum_taps(sums + i, begin, patches + i, w, taps);
        for (int32_t row = 0; row < rows; ++row)
          write_sums(y, ((size_t)part * s->outputs + o + row) * positions + at, sums + row * SUMMED,
                     count, scale[(first + row) * s->scales], bias ? bias[first + row] : 0,
                     &s->result);
      }
    }
  }
}
