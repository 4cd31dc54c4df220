/* What is applied to a result in the loop that computes it. */
enum activation_kind { NO_ACTIVATION, CLIP, LEAKY };
struct activation {
  enum activation_kind kind;
  float low, high; /* CLIP: the bounds; LEAKY: the slope below zero is `low` */
};

static void activate(float *y, int32_t count, struct activation s) {
  if (s.kind == CLIP) {
    for (int32_t i = 0; i < count; ++i) {
      const float v = y[i] < s.low ? s.low : y[i];
      y[i] = v > s.high ? s.high : v;
    }
  } else if (s.kind == LEAKY) {
    for (int32_t i = 0; i < count; ++i) y[i] = y[i] < 0 ? y[i] * s.low : y[i];
  }
}
