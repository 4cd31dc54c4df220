/* Convolution of each channel by itself, which `outputs` filters read. Rows of the image are copied, with
   their padding, into a ring of `span` rows, so that vectors need no care at the edges. With strides a
   copy holds each `stride`-th value, beginning at 0, then at 1, and so on, which are `step` values each.
   needs: activate lanes ring_row window */
#define MOST_TAPS 16 /* along an axis of a filter */
struct depthwise {
  int32_t samples, channels, outputs;
  struct window window; /* of depth 1 */
  int32_t span, step;   /* the ring has span * stride * step floats */
  struct activation activation;
};

/* The padding beside the row is there already. */
static void copy_row(float *to, const float *from, int32_t row, const struct depthwise *s) {
  const int32_t stride = s->window.stride[2], width = s->window.in[2], pad = s->window.pad[2];
  const int32_t is_inside = row >= 0 && row < s->window.in[1];
  from += (ptrdiff_t)row * width;
  for (int32_t phase = 0; phase < stride; ++phase, to += s->step) {
    const int32_t shift = phase - pad;
    const int32_t first = shift < 0 ? (-shift + stride - 1) / stride : 0;
    int32_t end = width > shift ? (width - shift + stride - 1) / stride : 0;
    if (end > s->step) end = s->step;
    if (end <= first) continue;
    if (!is_inside)
      memset(to + first, 0, (end - first) * sizeof(float));
    else if (stride == 1)
      memcpy(to + first, from + first + shift, (end - first) * sizeof(float));
    else
      for (int32_t i = first; i < end; ++i) to[i] = from[i * stride + shift];
  }
}

/* The sums for 2 * LANES positions; `columns`: where the taps of a row begin. */
static inline void sum_window(float *sums, float start, const float *w, const float *const *rows,
                              int32_t at, const int32_t *columns, int32_t height, int32_t width) {
  lanes a, b;
  memset(&a, 0, sizeof a);
  a += start;
  b = a;
  for (int32_t ky = 0; ky < height; ++ky) {
    for (int32_t kx = 0; kx < width; ++kx, ++w) {
      const float *const from = rows[ky] + at + columns[kx];
      a += *w * load(from);
      b += *w * load(from + LANES);
    }
  }
  store(sums, a);
  store(sums + LANES, b);
}

static void depthwise(float *y, const float *x, const float *weights, const float *bias,
                      float *ring, const struct depthwise *s) {
  const struct window *const window = &s->window;
  const int32_t *const in = window->in, *const out = window->out, *const kernel = window->kernel;
  const int32_t planes = s->channels * s->outputs;
  const size_t row_size = (size_t)window->stride[2] * s->step, size = (size_t)out[1] * out[2];
  const float *const end = y + s->samples * planes * size;
  int32_t columns[MOST_TAPS];
  memset(ring, 0, s->span * row_size * sizeof(float));
  for (int32_t kx = 0; kx < kernel[2]; ++kx) {
    const int32_t column = kx * window->dilation[2], stride = window->stride[2];
    columns[kx] = column % stride * s->step + column / stride;
  }
  for (int32_t part = 0; part < s->samples * planes; ++part) {
    const int32_t plane = part % planes;
    const float *const image = x + (size_t)(part / s->outputs) * in[1] * in[2];
    const float *const w = weights + (size_t)plane * kernel[1] * kernel[2];
    const float start = bias ? bias[plane] : 0;
    int32_t copied = -window->pad[1]; /* rows before it are in the ring */
    int32_t base = 0;                 /* where the window's first row is */
    for (int32_t row = 0; row < out[1]; ++row, y += out[2]) {
      const int32_t top = row * window->stride[1] - window->pad[1];
      const float *rows[MOST_TAPS];
      for (copied = copied < top ? top : copied; copied < top + s->span; ++copied)
        copy_row(ring + ring_row(base + copied - top, s->span) * row_size, image, copied, s);
      for (int32_t ky = 0; ky < kernel[1]; ++ky)
        rows[ky] = ring + ring_row(base + ky * window->dilation[1], s->span) * row_size;
      for (int32_t at = 0; at < out[2]; at += 2 * LANES) {
        /* What is behind the row comes later. At the end of y there is no memory for it. */
        const int is_last = end - (y + at) < 2 * LANES;
        float part[2 * LANES], *const to = is_last ? part : y + at;
        if (kernel[1] == 3 && kernel[2] == 3) /* the usual one, which compilers unroll */
          sum_window(to, start, w, rows, at, columns, 3, 3);
        else
          sum_window(to, start, w, rows, at, columns, kernel[1], kernel[2]);
        if (is_last) memcpy(y + at, part, (end - (y + at)) * sizeof(float));
      }
      base = (base + window->stride[1]) % s->span;
    }
    activate(y - size, (int32_t)size, s->activation);
  }
}
