/* The largest value in each cell of regions, which are rows of image, x1, y1, x2, y2 before `scale`; 0 for
   an empty cell and for a region of no image. */
struct max_roi_pool {
  int32_t images, channels, rows, columns, regions, cell_rows, cell_columns;
  float scale;
};

/* The first and last pixels of cell k of `cells`, between these corners. */
static void cell_pixels(float corner, float opposite, int32_t k, int32_t cells, int32_t extent,
                        float scale, int32_t *first, int32_t *end) {
  const float begin = roundf(corner * scale), last = roundf(opposite * scale);
  const float size = last - begin + 1 > 1 ? last - begin + 1 : 1, each = size / (float)cells;
  const float from = floorf((float)k * each) + begin, to = ceilf((float)(k + 1) * each) + begin;
  const float limit = (float)extent;
  *first = (int32_t)(from < 0 ? 0 : from > limit ? limit : from);
  *end = (int32_t)(to < 0 ? 0 : to > limit ? limit : to);
}

static void max_roi_pool(float *y, const float *x, const float *rois,
                         const struct max_roi_pool *s) {
  for (int32_t region = 0; region < s->regions; ++region, rois += 5) {
    const int32_t image = (int32_t)rois[0];
    for (int32_t c = 0; c < s->channels; ++c) {
      for (int32_t cell = 0; cell < s->cell_rows * s->cell_columns; ++cell, ++y) {
        int32_t top, bottom, left, right;
        *y = 0;
        if (image < 0 || image >= s->images) continue;
        const float *const from = x + ((size_t)image * s->channels + c) * s->rows * s->columns;
        cell_pixels(rois[2], rois[4], cell / s->cell_columns, s->cell_rows, s->rows, s->scale, &top,
                    &bottom);
        cell_pixels(rois[1], rois[3], cell % s->cell_columns, s->cell_columns, s->columns, s->scale,
                    &left, &right);
        if (bottom > top && right > left) *y = from[(size_t)top * s->columns + left];
        for (int32_t row = top; row < bottom; ++row)
          for (int32_t i = left; i < right; ++i)
            if (from[(size_t)row * s->columns + i] > *y) *y = from[(size_t)row * s->columns + i];
      }
    }
  }
}
