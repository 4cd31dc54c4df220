/* Convolution of 8-bit integers in each channel by itself, which `outputs` filters read. Rows of the image
   are copied, with their padding, into a ring, as in depthwise(). The filter is behind it.
   needs: counts ring_row write_sums */
#define MOST_INT8_TAPS 16 /* along an axis of a filter */

struct depthwise_int8 {
  struct conv_int8 conv; /* of depth 1 */
  int32_t span, step;    /* the ring has span * stride * step counts, more rows than a window */
};

/* Bytes of which every second one goes to `even`, and those between to `odd`. */
#if LANES == 8 && defined(__AVX2__)
static inline void put_8_pairs(count_type *even, count_type *odd, const uint8_t *from,
                               int32_t flip) {
  const bytes v = load_bytes(from, from + 8);
  const counts a = counts_of(SHUFFLE(v, FOUR(0, 2, 4, 6), FOUR(24, 26, 28, 30)), flip);
  const counts b = counts_of(SHUFFLE(v, FOUR(1, 3, 5, 7), FOUR(25, 27, 29, 31)), flip);
  memcpy(even, &a, sizeof a);
  memcpy(odd, &b, sizeof b);
}

static inline void put_4_pairs(count_type *even, count_type *odd, const uint8_t *from,
                               int32_t flip) {
  const bytes v = load_bytes(from, from);
  const counts n = counts_of(SHUFFLE(v, FOUR(0, 2, 4, 6), FOUR(17, 19, 21, 23)), flip);
  memcpy(even, &n, sizeof n / 2);
  memcpy(odd, (const char *)&n + sizeof n / 2, sizeof n / 2);
}
#elif LANES > 1
#define PUT_PAIRS(name, pairs)                                                 \
  static inline void name(count_type *restrict even, count_type *restrict odd, \
                          const uint8_t *restrict from, int32_t flip) {        \
    VECTORS                                                                    \
    for (int32_t i = 0; i < pairs; ++i) {                                      \
      even[i] = (count_type)((from[2 * i] ^ flip) - flip);                     \
      odd[i] = (count_type)((from[2 * i + 1] ^ flip) - flip);                  \
    }                                                                          \
  }
PUT_PAIRS(put_8_pairs, 8)
PUT_PAIRS(put_4_pairs, 4)
#endif

static void put_pairs(count_type *even, count_type *odd, const uint8_t *from, int32_t pairs,
                      int32_t flip) {
#if LANES > 1
  if (pairs >= 4) {
    int32_t i = 0;
    for (; i + 8 <= pairs; i += 8) put_8_pairs(even + i, odd + i, from + 2 * i, flip);
    if (i + 4 < pairs) put_4_pairs(even + i, odd + i, from + 2 * i, flip);
    i = pairs - 4; /* some of them again */
    put_4_pairs(even + i, odd + i, from + 2 * i, flip);
    return;
  }
#endif
  for (int32_t i = 0; i < pairs; ++i) {
    put_count(even + i, (from[2 * i] ^ flip) - flip);
    put_count(odd + i, (from[2 * i + 1] ^ flip) - flip);
  }
}

/* A row with stride 2: every second column, and those between. */
static void copy_pairs(count_type *to, const uint8_t *from, const struct depthwise_int8 *s) {
  const struct window *const window = &s->conv.window;
  const int32_t width = window->in[2], pad = window->pad[2], flip = s->conv.flip;
  const int32_t first = pad % 2, begin = (pad + first) / 2; /* of the first pair that is inside */
  count_type *const odd = to + s->step;
  int32_t pairs = (width - first) / 2;
  if (pairs > s->step - begin) pairs = s->step - begin;
  if (first == 1 && pad / 2 < s->step) put_count(odd + pad / 2, (from[0] ^ flip) - flip);
  from += first;
  put_pairs(to + begin, odd + begin, from, pairs, flip);
  if (first + 2 * pairs < width && begin + pairs < s->step)
    put_count(to + begin + pairs, (from[2 * pairs] ^ flip) - flip);
}

/* The padding beside the row is there already. */
static void copy_row_int8(count_type *to, const uint8_t *from, int32_t row,
                          const struct depthwise_int8 *s) {
  const struct window *const window = &s->conv.window;
  const int32_t stride = window->stride[2], width = window->in[2], flip = s->conv.flip;
  const int32_t is_inside = row >= 0 && row < window->in[1];
  from += (ptrdiff_t)row * width;
  if (is_inside && stride == 2) {
    copy_pairs(to, from, s);
    return;
  }
  for (int32_t phase = 0; phase < stride; ++phase, to += s->step) {
    const int32_t shift = phase - window->pad[2];
    const int32_t first = shift < 0 ? (-shift + stride - 1) / stride : 0;
    int32_t end = width > shift ? (width - shift + stride - 1) / stride : 0;
    if (end > s->step) end = s->step;
    if (end <= first) continue;
    if (!is_inside)
      memset(to + first, 0, (end - first) * sizeof(count_type));
    else if (stride == 1)
      put_counts(to + first, from + first + shift, end - first, flip);
    else
      for (int32_t i = first; i < end; ++i)
        put_count(to + i, (from[i * stride + shift] ^ flip) - flip);
  }
}

/* Adds the sums for 2 * LANES positions to `start`; `columns`: where the taps of a row begin. */
static inline void sum_bytes(int32_t *sums, int32_t start, const count_type *w,
                             const count_type *const *rows, int32_t at, const int32_t *columns,
                             int32_t height, int32_t width) {
  counts zero, a, b;
  memset(&zero, 0, sizeof zero);
  a = b = zero;
  for (int32_t ky = 0; ky < height; ++ky) {
    counts c = zero, d = zero; /* shorter chains of sums than a single one */
    for (int32_t kx = 0; kx < width; ++kx, ++w) {
      const count_type *const from = rows[ky] + at + columns[kx];
      count_type tap;
      memcpy(&tap, w, sizeof tap);
      c += tap * load_counts(from);
      d += tap * load_counts(from + LANES);
    }
    a += c;
    b += d;
  }
  store_counts(sums, a, start);
  store_counts(sums + LANES, b, start);
}

static void depthwise_int8(void *y, const void *x, const int8_t *weights, const int32_t *start,
                           const float *bias, const float *scale, void *memory,
                           const struct depthwise_int8 *s) {
  count_type *const ring = memory;
  const struct conv_int8 *const conv = &s->conv;
  const struct window *const window = &conv->window;
  const int32_t *const in = window->in, *const out = window->out, *const kernel = window->kernel;
  const int32_t planes = conv->groups * conv->outputs;
  const size_t row_size = (size_t)window->stride[2] * s->step;
  count_type *const w = ring + s->span * row_size;
  int32_t columns[MOST_INT8_TAPS], sums[MOST_SUMS + 2 * LANES] = {0};
  size_t to = 0;
  memset(ring, 0, s->span * row_size * sizeof(count_type));
  for (int32_t kx = 0; kx < kernel[2]; ++kx) {
    const int32_t column = kx * window->dilation[2], stride = window->stride[2];
    columns[kx] = column % stride * s->step + column / stride;
  }
  for (int32_t part = 0; part < conv->samples * planes; ++part) {
    const int32_t plane = part % planes;
    const uint8_t *const image =
        (const uint8_t *)x + (size_t)(part / conv->outputs) * in[1] * in[2];
    const float factor = scale[plane * conv->scales], shift = bias ? bias[plane] : 0;
    int32_t filled = 0;               /* sums; rows follow each other in y */
    int32_t copied = -window->pad[1]; /* rows before it are in the ring */
    int32_t base = 0;                 /* where the window's first row is */
    put_counts(w, (const uint8_t *)weights + (size_t)plane * conv->taps, conv->taps, 128);
    for (int32_t row = 0; row < out[1]; ++row) {
      const int32_t top = row * window->stride[1] - window->pad[1];
      const count_type *rows[MOST_INT8_TAPS];
      for (copied = copied < top ? top : copied; copied < top + s->span; ++copied)
        copy_row_int8(ring + ring_row(base + copied - top, s->span) * row_size, image, copied, s);
      for (int32_t ky = 0; ky < kernel[1]; ++ky)
        rows[ky] = ring + ring_row(base + ky * window->dilation[1], s->span) * row_size;
      for (int32_t at = 0; at < out[2]; at += 2 * LANES) {
        const int32_t count = out[2] - at < 2 * LANES ? out[2] - at : 2 * LANES;
        const int32_t begin = start ? start[plane] : 0;
        if (kernel[1] == 3 && kernel[2] == 3) /* the usual one, which compilers unroll */
          sum_bytes(sums + filled, begin, w, rows, at, columns, 3, 3);
        else
          sum_bytes(sums + filled, begin, w, rows, at, columns, kernel[1], kernel[2]);
        filled += count;
        if (filled < MOST_SUMS) continue;
        write_sums(y, to, sums, MOST_SUMS, factor, shift, &conv->result);
        memcpy(sums, sums + MOST_SUMS, 2 * LANES * sizeof *sums);
        to += MOST_SUMS;
        filled -= MOST_SUMS;
      }
      base = (int32_t)ring_row(base + window->stride[1], s->span);
    }
    write_sums(y, to, sums, filled, factor, shift, &conv->result);
    to += filled;
  }
}
