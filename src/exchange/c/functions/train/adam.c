/* A step of Adam. `rate` has the correction of the means, which begin as zeros.
   needs: penalty */
struct adam {
  float momentum, momentum2, delta;
};

static void adam(float *restrict w, float *restrict mean, float *restrict square,
                 const float *restrict gradient, int32_t count, float rate, struct decay decay,
                 const struct adam *s) {
  for (int32_t i = 0; i < count; ++i) {
    const float g = gradient[i] + penalty(w[i], decay);
    mean[i] = s->momentum * mean[i] + (1 - s->momentum) * g;
    square[i] = s->momentum2 * square[i] + (1 - s->momentum2) * g * g;
    const float below = sqrtf(square[i]) + s->delta;
    w[i] -= mean[i] == 0 ? 0 : rate * mean[i] / below;
  }
}
