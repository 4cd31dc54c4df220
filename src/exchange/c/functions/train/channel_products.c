/* A batch whose channels have statistics. */
#define SUMS 8 /* sums that are added up at a time */
struct batch_norm {
  int32_t samples, channels, positions;
  float epsilon, fraction; /* fraction: of what is stored, which stays */
};

/* The sums of a - center and of (a - center) * (b - center) over a channel. */
struct channel_products {
  double sum, products;
};

static struct channel_products channel_products(const float *a, const float *b, float center,
                                                const struct batch_norm *s) {
  struct channel_products all = {0, 0};
  const size_t image = (size_t)s->channels * s->positions;
  for (int32_t sample = 0; sample < s->samples; ++sample, a += image, b += image) {
    float sums[SUMS] = {0}, products[SUMS] = {0};
    int32_t i = 0;
    for (; i + SUMS <= s->positions; i += SUMS) {
      for (int32_t k = 0; k < SUMS; ++k) {
        const float v = a[i + k] - center;
        sums[k] += v;
        products[k] += v * (b[i + k] - center);
      }
    }
    for (int32_t k = 0; i < s->positions; ++i, ++k) {
      const float v = a[i] - center;
      sums[k] += v;
      products[k] += v * (b[i] - center);
    }
    for (int32_t k = 0; k < SUMS; ++k) {
      all.sum += sums[k];
      all.products += products[k];
    }
  }
  return all;
}
