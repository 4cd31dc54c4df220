/* The mean of samples in each cell of regions, which are rows x1, y1, x2, y2 before `scale`; samples are
   interpolated between pixels. `images` has the image of each region; of no image, a region is 0. */
struct roi_align {
  int32_t images, channels, rows, columns, regions, cell_rows, cell_columns;
  int32_t samples; /* along an axis of a cell; 0: one for each pixel */
  float scale, shift;
};

/* Interpolates at a place; 0 beyond the image. */
static float value_between(const float *x, int32_t rows, int32_t columns, float row, float column) {
  if (!(row >= -1 && row <= (float)rows && column >= -1 && column <= (float)columns)) return 0;
  const float y = row < 0 ? 0 : row > (float)(rows - 1) ? (float)(rows - 1) : row;
  const float v = column < 0 ? 0 : column > (float)(columns - 1) ? (float)(columns - 1) : column;
  const int32_t above = (int32_t)y, left = (int32_t)v;
  const int32_t below = above + 1 < rows ? above + 1 : above;
  const int32_t right = left + 1 < columns ? left + 1 : left;
  const float b = y - (float)above, a = v - (float)left;
  const float *const upper = x + (size_t)above * columns, *const lower =
                                                              x + (size_t)below * columns;
  return (1 - b) * ((1 - a) * upper[left] + a * upper[right]) +
         b * ((1 - a) * lower[left] + a * lower[right]);
}

static void roi_align(float *y, const float *x, const float *rois, const int32_t *images,
                      const struct roi_align *s) {
  for (int32_t region = 0; region < s->regions; ++region, rois += 4) {
    const int32_t image = images[region];
    const float left = rois[0] * s->scale - s->shift, top = rois[1] * s->scale - s->shift;
    float width = rois[2] * s->scale - s->shift - left,
          height = rois[3] * s->scale - s->shift - top;
    if (s->shift == 0) {
      width = width < 1 ? 1 : width;
      height = height < 1 ? 1 : height;
    }
    const float across = width / (float)s->cell_columns, down = height / (float)s->cell_rows;
    const int32_t in_row = s->samples > 0 ? s->samples : (int32_t)ceilf(across);
    const int32_t in_column = s->samples > 0 ? s->samples : (int32_t)ceilf(down);
    for (int32_t c = 0; c < s->channels; ++c) {
      for (int32_t cell = 0; cell < s->cell_rows * s->cell_columns; ++cell, ++y) {
        const int32_t cell_row = cell / s->cell_columns, cell_column = cell % s->cell_columns;
        float sum = 0;
        *y = 0;
        if (image < 0 || image >= s->images || in_row * in_column == 0) continue;
        const float *const from = x + ((size_t)image * s->channels + c) * s->rows * s->columns;
        for (int32_t i = 0; i < in_column; ++i) {
          const float row =
              top + (float)cell_row * down + ((float)i + 0.5f) * down / (float)in_column;
          for (int32_t k = 0; k < in_row; ++k) {
            const float column =
                left + (float)cell_column * across + ((float)k + 0.5f) * across / (float)in_row;
            sum += value_between(from, s->rows, s->columns, row, column);
          }
        }
        *y = sum / (float)(in_row * in_column);
      }
    }
  }
}
