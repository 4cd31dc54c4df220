/* The gradient of a PReLU's slopes.
   needs: prelu */
static void prelu_slope_gradient(float *to, const float *dy, const float *x,
                                 const struct prelu *s) {
  for (int32_t c = 0; c < s->channels; ++c) {
    float sum = 0;
    for (int32_t sample = 0; sample < s->samples; ++sample) {
      const size_t first = ((size_t)sample * s->channels + c) * s->positions;
      float part = 0;
      for (size_t i = first; i < first + s->positions; ++i) part += x[i] > 0 ? 0 : x[i] * dy[i];
      sum += part;
    }
    to[c] = sum;
  }
}
