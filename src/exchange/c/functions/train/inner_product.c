/* y = x * w + bias, where w has a row for each result, as layers and training have it.
   needs: activate lanes */
struct inner_product {
  int32_t rows, inner, columns; /* of x: rows of `inner` values; columns: of y */
  struct activation activation;
};

static float product_of_rows(const float *x, const float *w, int32_t count) {
  float parts[LANES], sum = 0;
  int32_t i = 0;
  for (int32_t k = 0; k < LANES; ++k) parts[k] = 0;
  lanes a = load(parts), b = a, c = a, d = a;
  for (; i + 4 * LANES <= count; i += 4 * LANES) {
    a += load(x + i) * load(w + i);
    b += load(x + i + LANES) * load(w + i + LANES);
    c += load(x + i + 2 * LANES) * load(w + i + 2 * LANES);
    d += load(x + i + 3 * LANES) * load(w + i + 3 * LANES);
  }
  store(parts, (a + b) + (c + d));
  for (int32_t k = 0; k < LANES; ++k) sum += parts[k];
  for (; i < count; ++i) sum += x[i] * w[i];
  return sum;
}

static void inner_product(float *y, const float *x, const float *w, const float *bias,
                          const struct inner_product *s) {
  for (int32_t row = 0; row < s->rows; ++row, x += s->inner, y += s->columns) {
    for (int32_t i = 0; i < s->columns; ++i)
      y[i] = product_of_rows(x, w + (size_t)i * s->inner, s->inner) + (bias ? bias[i] : 0);
    activate(y, s->columns, s->activation);
  }
}
