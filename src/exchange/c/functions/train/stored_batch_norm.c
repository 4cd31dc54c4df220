/* Normalizes each channel by stored statistics: sums of means and variances of `number` batches. Without
   means it only divides by the deviation, as the gradient does. */
struct stored_batch_norm {
  int32_t samples, channels, positions;
  float epsilon;
};

static void stored_batch_norm(float *y, const float *x, const float *means, const float *variances,
                              const float *number, const struct stored_batch_norm *s) {
  const float by = *number == 0 ? 0 : 1 / *number;
  for (int32_t plane = 0; plane < s->samples * s->channels; ++plane) {
    const int32_t c = plane % s->channels;
    const float mean = means ? by * means[c] : 0;
    const float inverse = 1 / sqrtf(by * variances[c] + s->epsilon);
    for (int32_t i = 0; i < s->positions; ++i) y[i] = (x[i] - mean) * inverse;
    x += s->positions;
    y += s->positions;
  }
}
