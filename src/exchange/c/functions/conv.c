/* Convolution over up to three axes (depth, height, width), with groups.
   needs: activate lanes patches */
#define TILE 16           /* positions that are computed together */
#define MOST_PATCHES 8192 /* floats */

struct conv {
  int32_t samples, groups, channels, outputs; /* channels and outputs: of one group */
  struct window window;
  int32_t chunk;  /* taps whose patches are copied at a time */
  int32_t direct; /* the input is its own matrix of patches */
  struct activation activation;
};

/* Adds `taps` products to a tile of `rows` output channels. */
static void tile_of_4(const float *w, const float *x, size_t step, int32_t taps, float *sums) {
  for (int32_t at = 0; at < TILE; at += 2 * LANES) {
    float *const s = sums + at;
    const float *from = x + at;
    const float *v = w;
    lanes a0 = load(s), a1 = load(s + LANES);
    lanes b0 = load(s + TILE), b1 = load(s + TILE + LANES);
    lanes c0 = load(s + 2 * TILE), c1 = load(s + 2 * TILE + LANES);
    lanes d0 = load(s + 3 * TILE), d1 = load(s + 3 * TILE + LANES);
    for (int32_t tap = 0; tap < taps; ++tap, v += 4, from += step) {
      lanes p = load(from), q = load(from + LANES);
      KEEP(p);
      KEEP(q);
      a0 += v[0] * p, a1 += v[0] * q;
      b0 += v[1] * p, b1 += v[1] * q;
      c0 += v[2] * p, c1 += v[2] * q;
      d0 += v[3] * p, d1 += v[3] * q;
    }
    store(s, a0), store(s + LANES, a1);
    store(s + TILE, b0), store(s + TILE + LANES, b1);
    store(s + 2 * TILE, c0), store(s + 2 * TILE + LANES, c1);
    store(s + 3 * TILE, d0), store(s + 3 * TILE + LANES, d1);
  }
}

#if defined(__GNUC__) && defined(__AVX512F__)
#define BLOCKS 2 /* of four output channels, that are computed together */
typedef float wide __attribute__((vector_size(4 * TILE)));

static void tile_of_8(const float *w, const float *w2, const float *x, size_t step, int32_t taps,
                      float *sums) {
  wide a[8];
  memcpy(a, sums, sizeof a);
  for (int32_t tap = 0; tap < taps; ++tap, w += 4, w2 += 4, x += step) {
    wide p;
    memcpy(&p, x, sizeof p);
    KEEP(p);
    a[0] += w[0] * p, a[1] += w[1] * p, a[2] += w[2] * p, a[3] += w[3] * p;
    a[4] += w2[0] * p, a[5] += w2[1] * p, a[6] += w2[2] * p, a[7] += w2[3] * p;
  }
  memcpy(sums, a, sizeof a);
}
#else
#define BLOCKS 1
#endif

static void tile_of_1(const float *w, int32_t rows, const float *x, size_t step, int32_t taps,
                      float *sums) {
  for (int32_t at = 0; at < TILE; at += LANES) {
    lanes a = load(sums + at);
    for (int32_t tap = 0; tap < taps; ++tap) a += w[tap * rows] * load(x + at + tap * step);
    store(sums + at, a);
  }
}

static void copy_tile(float *to, const float *from, int32_t count) {
  if (count == TILE)
    memcpy(to, from, TILE * sizeof(float));
  else
    memcpy(to, from, count * sizeof(float));
}

/* All output channels of `count` positions from `at` on, for a group: its part of x, y and so on. Output
   channels come in blocks of four, the last block may have fewer; weights have the axes block, tap,
   channel of the block. */
static void conv_tile(float *y, const float *x, const float *weights, const float *bias,
                      float *patches, int32_t at, int32_t count, const struct conv *s) {
  const struct window *const window = &s->window;
  const int32_t positions = window->out[0] * window->out[1] * window->out[2];
  const int32_t taps = s->channels * window->kernel[0] * window->kernel[1] * window->kernel[2];
  for (int32_t first = 0; first < taps; first += s->chunk) {
    const int32_t some = taps - first < s->chunk ? taps - first : s->chunk;
    const float *from = patches;
    size_t step = TILE;
    if (s->direct && count == TILE) {
      from = x + (size_t)first * positions + at;
      step = positions;
    } else {
      copy_patches(x, patches, window, at, count, first, some);
    }
    for (int32_t o = 0, rows; o < s->outputs; o += rows) {
      const int32_t left = s->outputs - o;
      rows = left < 4 ? left : BLOCKS == 2 && left >= 8 ? 8 : 4;
      const float *const w = weights + (size_t)o * taps + (size_t)first * (rows < 4 ? rows : 4);
      float *const out = y + (size_t)o * positions + at;
      float sums[4 * BLOCKS * TILE];
      for (int32_t row = 0; row < rows; ++row) {
        float *const sum = sums + row * TILE;
        if (first > 0) {
          copy_tile(sum, out + (size_t)row * positions, count);
          for (int32_t i = count; i < TILE; ++i) sum[i] = 0;
        } else {
          const float start = bias ? bias[o + row] : 0;
          for (int32_t i = 0; i < TILE; ++i) sum[i] = start;
        }
      }
      if (rows == 4) {
        tile_of_4(w, from, step, some, sums);
#if BLOCKS == 2
      } else if (rows == 8) {
        tile_of_8(w, w + 4 * (size_t)taps, from, step, some, sums);
#endif
      } else {
        for (int32_t row = 0; row < rows; ++row)
          tile_of_1(w + row, rows, from, step, some, sums + row * TILE);
      }
      if (first + some == taps) activate(sums, rows * TILE, s->activation);
      for (int32_t row = 0; row < rows; ++row)
        copy_tile(out + (size_t)row * positions, sums + row * TILE, count);
    }
  }
}

/* `patches` has room for chunk * TILE floats; with OpenMP each thread has room of its own. */
static void conv(float *y, const float *x, const float *weights, const float *bias, float *patches,
                 const struct conv *s) {
  const struct window *const window = &s->window;
  const int32_t positions = window->out[0] * window->out[1] * window->out[2];
  const int32_t taps = s->channels * window->kernel[0] * window->kernel[1] * window->kernel[2];
  const size_t image = (size_t)window->in[0] * window->in[1] * window->in[2] * s->channels;
  for (int32_t part = 0; part < s->samples * s->groups; ++part) {
    const int32_t group = part % s->groups;
    const float *const from = x + part * image;
    const float *const w = weights + (size_t)group * s->outputs * taps;
    const float *const shift = bias ? bias + group * s->outputs : bias;
    float *const to = y + (size_t)part * s->outputs * positions;
#ifdef _OPENMP
#pragma omp parallel for if ((double)positions * s->outputs * taps > 4e6)
#endif
    for (int32_t at = 0; at < positions; at += TILE) {
      const int32_t count = positions - at < TILE ? positions - at : TILE;
#ifdef _OPENMP
      float room[MOST_PATCHES];
      (void)patches;
      conv_tile(to, from, w, shift, room, at, count, s);
#else
      conv_tile(to, from, w, shift, patches, at, count, s);
#endif
    }
  }
}
