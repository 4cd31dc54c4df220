/* Sets random values to zero and multiplies the others by a factor. Which ones is a function of seed,
   layer and iteration, so the backward pass finds the same ones; they are those that Crema draws
   (Philox4x32-10). Four channels of a position, a quarter of all apart, share a draw. */
struct dropout {
  uint64_t seed, layer;
  int32_t images, channels, positions;
  uint32_t threshold; /* random numbers below it set their value to zero */
  float factor;
};

/* The stream of random numbers of a layer in an iteration. */
static uint64_t stream_of(uint64_t layer, uint64_t iteration) {
  uint64_t x = layer * 0x9E3779B97F4A7C15u + iteration + 0x632BE59BD9B4E019u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

static void draw_four(uint32_t *words, uint64_t seed, uint64_t stream, uint64_t index) {
  uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32);
  uint32_t c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
    const uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c1 = (uint32_t)p1;
    c3 = (uint32_t)p0;
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  words[0] = c0, words[1] = c1, words[2] = c2, words[3] = c3;
}

static void dropout(float *y, const float *x, int32_t iteration, const struct dropout *s) {
  const uint64_t stream = stream_of(s->layer, (uint64_t)iteration);
  const int32_t quarter = s->channels / 4, quads = (s->channels + 3) / 4;
  uint64_t draw = 0;
  for (int32_t image = 0; image < s->images; ++image) {
    for (int32_t quad = 0; quad < quads; ++quad) {
      for (int32_t position = 0; position < s->positions; ++position, ++draw) {
        const int32_t left = quad < quarter ? 4 : s->channels - 4 * quarter;
        const int32_t first = quad < quarter ? quad : 4 * quarter;
        uint32_t words[4];
        draw_four(words, s->seed, stream, draw);
        for (int32_t k = 0; k < left; ++k) {
          const int32_t channel = first + k * (quad < quarter ? quarter : 1);
          const size_t at = (size_t)channel * s->positions + position;
          y[at] = words[k] >= s->threshold ? x[at] * s->factor : 0;
        }
      }
    }
    y += (size_t)s->channels * s->positions;
    x += (size_t)s->channels * s->positions;
  }
}
