/* Convolution of 8-bit integers in each channel by itself, which `outputs` filters read. Rows of the image
   are copied, with their padding, into a ring, as in depthwise().
   needs: counts ring_row write_sums */
#define MOST_INT8_TAPS 16 /* along an axis of a filter */

struct depthwise_int8 {
  struct conv_int8 conv; /* of depth 1 */
  int32_t span, step;    /* the ring has span * stride * step counts */
};

/* The padding beside the row is there already. */
static void copy_row_int8(count_type *to, const uint8_t *from, int32_t row,
                          const struct depthwise_int8 *s) {
  const struct window *const window = &s->conv.window;
  const int32_t stride = window->stride[2], width = window->in[2], flip = s->conv.flip;
  const int32_t is_inside = row >= 0 && row < window->in[1];
  from += (ptrdiff_t)row * width;
  for (int32_t phase = 0; phase < stride; ++phase, to += s->step) {
    const int32_t shift = phase - window->pad[2];
    const int32_t first = shift < 0 ? (-shift + stride - 1) / stride : 0;
    int32_t end = width > shift ? (width - shift + stride - 1) / stride : 0;
    if (end > s->step) end = s->step;
    if (end <= first) continue;
    if (!is_inside)
      memset(to + first, 0, (end - first) * sizeof(count_type));
    else if (stride == 1)
      for (int32_t i = first; i < end; ++i) put_count(to + i, (from[i + shift] ^ flip) - flip);
    else
      for (int32_t i = first; i < end; ++i)
        put_count(to + i, (from[i * stride + shift] ^ flip) - flip);
  }
}

/* Adds the sums for 2 * LANES positions to `start`; `columns`: where the taps of a row begin. */
static inline void sum_bytes(int32_t *sums, int32_t start, const int8_t *w,
                             const count_type *const *rows, int32_t at, const int32_t *columns,
                             int32_t height, int32_t width) {
  count_type parts[2 * LANES];
  counts a, b;
  memset(&a, 0, sizeof a);
  b = a;
  for (int32_t ky = 0; ky < height; ++ky) {
    for (int32_t kx = 0; kx < width; ++kx, ++w) {
      const count_type *const from = rows[ky] + at + columns[kx];
      a += (count_type)*w * load_counts(from);
      b += (count_type)*w * load_counts(from + LANES);
    }
  }
  memcpy(parts, &a, sizeof a);
  memcpy(parts + LANES, &b, sizeof b);
  for (int32_t i = 0; i < 2 * LANES; ++i) sums[i] = (int32_t)parts[i] + start;
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
  int32_t columns[MOST_INT8_TAPS];
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
    const int8_t *const w = weights + (size_t)plane * conv->taps;
    const float factor = scale[plane * conv->scales], shift = bias ? bias[plane] : 0;
    int32_t sums[MOST_SUMS + 2 * LANES], filled = 0; /* rows follow each other in y */
    int32_t copied = -window->pad[1];                /* rows before it are in the ring */
    int32_t base = 0;                                /* where the window's first row is */
    for (int32_t row = 0; row < out[1]; ++row) {
      const int32_t top = row * window->stride[1] - window->pad[1];
      const count_type *rows[MOST_INT8_TAPS];
      for (copied = copied < top ? top : copied; copied < top + s->span; ++copied)
        copy_row_int8(ring + ring_row(base + copied - top, s->span) * row_size, image, copied, s);
      for (int32_t ky = 0; ky < kernel[1]; ++ky)
        rows[ky] = ring + ring_row(base + ky * window->dilation[1], s->span) * row_size;
      for (int32_t at = 0; at < out[2]; at += 2 * LANES) {
        const int32_t count = out[2] - at < 2 * LANES ? out[2] - at : 2 * LANES;
        if (filled + count > MOST_SUMS) {
          write_sums(y, to, sums, filled, factor, shift, &conv->result);
          to += filled;
          filled = 0;
        }
        const int32_t begin = start ? start[plane] : 0;
        if (kernel[1] == 3 && kernel[2] == 3) /* the usual one, which compilers unroll */
          sum_bytes(sums + filled, begin, w, rows, at, columns, 3, 3);
        else
          sum_bytes(sums + filled, begin, w, rows, at, columns, kernel[1], kernel[2]);
        filled += count;
      }
      base = (base + window->stride[1]) % s->span;
    }
    write_sums(y, to, sums, filled, factor, shift, &conv->result);
    to += filled;
  }
}
