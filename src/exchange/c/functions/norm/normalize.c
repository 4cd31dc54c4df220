/* Subtracts the mean of each row and divides by its deviation. Factor and shift are those of the column
   or, `by_row`, of the row modulo `period`. */
struct normalize {
  int32_t rows, count, by_row, period;
  float epsilon;
};

static void normalize(float *y, const float *x, const float *scale, const float *shift,
                      const struct normalize *s) {
  for (int32_t row = 0; row < s->rows; ++row, x += s->count, y += s->count) {
    float sum = 0, squares = 0;
    for (int32_t i = 0; i < s->count; ++i) sum += x[i];
    const float mean = sum / (float)s->count;
    for (int32_t i = 0; i < s->count; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const float factor = 1 / sqrtf(squares / (float)s->count + s->epsilon);
    for (int32_t i = 0; i < s->count; ++i) {
      const int32_t at = s->by_row ? row % s->period : i;
      y[i] = (x[i] - mean) * factor * scale[at] + (shift ? shift[at] : 0);
    }
  }
}
