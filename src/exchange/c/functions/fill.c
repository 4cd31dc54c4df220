/* Sets all elements to a value. */
static void fill(float *y, int32_t count, float value) {
  for (int32_t i = 0; i < count; ++i) y[i] = value;
}
