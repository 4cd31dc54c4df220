/* Convolution of 8-bit integers over up to three axes, with groups. A fully connected layer is one of
   images of one position. x becomes unsigned, as processors multiply bytes; `start` makes up for it.
   needs: write_sums */
#define MOST_POSITIONS 16 /* that are computed together */

/* Copies what all taps read at a position, in the order of the weights: depth, row, channel, column. Zeros
   are outside the image, which ends at `end`. Writes up to seven bytes more. */
static void copy_bytes(uint8_t *to, const uint8_t *x, const uint8_t *end, int32_t at,
                       const struct conv_int8 *s) {
  const int32_t *const in = s->window.in, *const out = s->window.out, *const pad = s->window.pad;
  const int32_t *const kernel = s->window.kernel, *const stride = s->window.stride;
  const int32_t plane = in[0] * in[1] * in[2], length = kernel[2], dilation = s->window.dilation[2];
  const int32_t ix = at % out[2] * stride[2] - pad[2];
  int32_t first = ix < 0 ? (-ix + dilation - 1) / dilation : 0; /* taps [first, last) are inside */
  int32_t last = in[2] > ix ? (in[2] - ix + dilation - 1) / dilation : 0;
  first = first < length ? first : length;
  last = last < length ? last : length;
  for (int32_t k = 0; k < kernel[0] * kernel[1]; ++k, to += (size_t)s->channels * length) {
    const int32_t z = at / (out[2] * out[1]) * stride[0] - pad[0];
    const int32_t y = at / out[2] % out[1] * stride[1] - pad[1];
    const int32_t iz = z + k / kernel[1] * s->window.dilation[0];
    const int32_t iy = y + k % kernel[1] * s->window.dilation[1];
    const int outside = iz < 0 || iz >= in[0] || iy < 0 || iy >= in[1] || first >= last;
    if (outside || first > 0 || last < length) memset(to, 0, (size_t)s->channels * length);
    if (outside) continue;
    const uint8_t *const from = x + ((size_t)iz * in[1] + iy) * in[2] + (ix + first * dilation);
    int32_t c = 0;
    if (first == 0 && last == length && dilation == 1 && length <= 8)
      for (; c < s->channels && end - from >= (ptrdiff_t)c * plane + 8; ++c)
        memcpy(to + (size_t)c * length, from + (size_t)c * plane, 8);
    for (; c < s->channels; ++c)
      for (int32_t kx = first; kx < last; ++kx)
        to[c * length + kx] = from[(ptrdiff_t)c * plane + (kx - first) * dilation];
  }
}

static int32_t product_of_bytes(const uint8_t *x, const int8_t *w, int32_t taps) {
  int32_t sum = 0;
  for (int32_t k = 0; k < taps; ++k) sum += x[k] * w[k];
  return sum;
}

/* Adds the products of two rows of patches and four of weights. */
static void products_of_bytes(const uint8_t *x, const int8_t *w, int32_t taps, int32_t *sums) {
  const uint8_t *const next = x + taps;
  const int8_t *const w1 = w + taps, *const w2 = w1 + taps, *const w3 = w2 + taps;
  int32_t a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;
  for (int32_t k = 0; k < taps; ++k) {
    a += x[k] * w[k], e += next[k] * w[k];
    b += x[k] * w1[k], f += next[k] * w1[k];
    c += x[k] * w2[k], g += next[k] * w2[k];
    d += x[k] * w3[k], h += next[k] * w3[k];
  }
  sums[0] += a, sums[1] += e;
  sums += MOST_POSITIONS;
  sums[0] += b, sums[1] += f;
  sums += MOST_POSITIONS;
  sums[0] += c, sums[1] += g;
  sums += MOST_POSITIONS;
  sums[0] += d, sums[1] += h;
}

/* The sums start at `start`, or 0 if it is NULL; `bias` may be NULL, too. */
static void conv_int8(void *y, const void *x, const int8_t *weights, const int32_t *start,
                      const float *bias, const float *scale, uint8_t *patches,
                      const struct conv_int8 *s) {
  const struct window *const window = &s->window;
  const int32_t positions = window->out[0] * window->out[1] * window->out[2], taps = s->taps;
  const uint8_t flip = (uint8_t)s->flip;
  const size_t image = (size_t)window->in[0] * window->in[1] * window->in[2] * s->channels;
  for (int32_t part = 0; part < s->samples * s->groups; ++part) {
    const int32_t first = part % s->groups * s->outputs;
    const uint8_t *const from = (const uint8_t *)x + part * image;
    for (int32_t at = 0; at < positions; at += s->tile) {
      const int32_t count = positions - at < s->tile ? positions - at : s->tile;
      for (int32_t i = 0; i < count; ++i)
        copy_bytes(patches + (size_t)i * taps, from, from + image, at + i, s);
      for (int32_t i = 0; i < count * taps; ++i) patches[i] ^= flip;
      for (int32_t o = 0; o < s->outputs; o += 4) {
        const int32_t rows = s->outputs - o < 4 ? s->outputs - o : 4;
        const int8_t *const w = weights + (size_t)(first + o) * taps;
        int32_t sums[4 * MOST_POSITIONS], i = 0;
        for (int32_t row = 0; row < rows; ++row)
          for (int32_t k = 0; k < MOST_POSITIONS; ++k)
            sums[row * MOST_POSITIONS + k] = start ? start[first + o + row] : 0;
        if (rows == 4)
          for (; i + 2 <= count; i += 2)
            products_of_bytes(patches + (size_t)i * taps, w, taps, sums + i);
        for (; i < count; ++i)
          for (int32_t row = 0; row < rows; ++row)
            sums[row * MOST_POSITIONS + i] +=
                product_of_bytes(patches + (size_t)i * taps, w + (size_t)row * taps, taps);
        for (int32_t row = 0; row < rows; ++row) {
          const int32_t line = first + o + row;
          const size_t to = ((size_t)part * s->outputs + o + row) * positions + at;
          write_sums(y, to, sums + row * MOST_POSITIONS, count, scale[line * s->scales],
                     bias ? bias[line] : 0, &s->result);
        }
      }
    }
  }
}
