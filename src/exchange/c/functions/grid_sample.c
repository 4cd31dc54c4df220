/* Interpolates between the pixels of an image at the places of a grid, which has pairs (x, y) from -1 to
   1: these are the centres of the outermost pixels or, without `corners`, their outer edges. Pixels
   outside the image are zero or, with `border`, the nearest ones inside. */
struct grid_sample {
  int32_t samples, channels, rows, columns, places, corners, border;
};

static float pixel_at(const float *x, const struct grid_sample *s, int32_t row, int32_t column) {
  if (s->border) {
    row = row < 0 ? 0 : row < s->rows ? row : s->rows - 1;
    column = column < 0 ? 0 : column < s->columns ? column : s->columns - 1;
  }
  if (row < 0 || row >= s->rows || column < 0 || column >= s->columns) return 0;
  return x[(size_t)row * s->columns + column];
}

/* The place in pixels, at most two pixels outside the image. */
static float place_of(float at, int32_t extent, int32_t corners) {
  const float place =
      corners ? (at + 1) / 2 * (float)(extent - 1) : ((at + 1) * (float)extent - 1) / 2;
  return place > -2 ? (place < (float)extent + 1 ? place : (float)extent + 1) : -2;
}

static void grid_sample(float *y, const float *x, const float *grid, const struct grid_sample *s) {
  for (int32_t sample = 0; sample < s->samples; ++sample, grid += 2 * s->places) {
    for (int32_t c = 0; c < s->channels; ++c, x += (size_t)s->rows * s->columns, y += s->places) {
      for (int32_t i = 0; i < s->places; ++i) {
        const float column = place_of(grid[2 * i], s->columns, s->corners);
        const float row = place_of(grid[2 * i + 1], s->rows, s->corners);
        const int32_t left = (int32_t)floorf(column), above = (int32_t)floorf(row);
        const float a = column - (float)left, b = row - (float)above;
        const float upper =
            (1 - a) * pixel_at(x, s, above, left) + a * pixel_at(x, s, above, left + 1);
        const float lower =
            (1 - a) * pixel_at(x, s, above + 1, left) + a * pixel_at(x, s, above + 1, left + 1);
        y[i] = (1 - b) * upper + b * lower;
      }
    }
  }
}
