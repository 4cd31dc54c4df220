/* Reads a picture, makes the net's input of it, and prints the largest results. */
struct picture {
  int32_t channels, rows, columns;
  unsigned char *pixels; /* row, column, channel */
};

struct preparation {
  int32_t rows, columns;           /* to which a picture is brought first */
  int32_t short_side;              /* or else the length of its smaller side; 0: rows and columns */
  int32_t top, left;               /* where the input begins in it */
  int32_t channels, height, width; /* of the input */
  int32_t picture_channels, is_blue; /* is_blue: the first plane is blue */
  const float *mean; /* one number, one for each channel, or as many as the input has */
  int32_t means;
  float scale;
};

/* A number of a header, in front of which there may be comments. */
static int32_t header_number(FILE *file) {
  int c = fgetc(file);
  int32_t number = 0, digits = 0;
  while (c == '#' || c == ' ' || c == '\t' || c == '\r' || c == '\n') {
    if (c == '#')
      while (c != '\n' && c != EOF) c = fgetc(file);
    c = fgetc(file);
  }
  for (; c >= '0' && c <= '9' && number < 100000; c = fgetc(file), ++digits)
    number = 10 * number + (c - '0');
  return digits > 0 ? number : -1;
}

/* A binary PGM (P5) or PPM (P6). Returns 0 unless it is one. */
static int read_picture(const char *path, struct picture *picture) {
  FILE *const file = fopen(path, "rb");
  size_t count = 0;
  picture->pixels = NULL;
  if (!file) return 0;
  const int first = fgetc(file), second = fgetc(file);
  picture->channels = second == '5' ? 1 : 3;
  picture->columns = header_number(file);
  picture->rows = header_number(file);
  if (first == 'P' && (second == '5' || second == '6') && header_number(file) == 255 &&
      picture->rows > 0 && picture->columns > 0) {
    count = (size_t)picture->rows * (size_t)picture->columns * (size_t)picture->channels;
    picture->pixels = malloc(count);
  }
  const int whole = picture->pixels && fread(picture->pixels, 1, count, file) == count;
  fclose(file);
  return whole;
}

static float pixel(const struct picture *p, int32_t row, int32_t column, int32_t channel) {
  return p->pixels[((size_t)row * (size_t)p->columns + (size_t)column) * (size_t)p->channels +
                   (size_t)(p->channels == 1 ? 0 : channel)];
}

/* A pixel of the picture after resizing, interpolated between pixel centres. */
static float resized_pixel(const struct picture *p, const struct preparation *s, int32_t row,
                           int32_t column, int32_t channel) {
  if (p->rows == s->rows && p->columns == s->columns) return pixel(p, row, column, channel);
  float y = ((float)row + 0.5f) * (float)p->rows / (float)s->rows - 0.5f;
  float x = ((float)column + 0.5f) * (float)p->columns / (float)s->columns - 0.5f;
  y = y < 0 ? 0 : y;
  x = x < 0 ? 0 : x;
  const int32_t above = (int32_t)y < p->rows ? (int32_t)y : p->rows - 1;
  const int32_t left = (int32_t)x < p->columns ? (int32_t)x : p->columns - 1;
  const int32_t below = above + 1 < p->rows ? above + 1 : above;
  const int32_t right = left + 1 < p->columns ? left + 1 : left;
  const float a = x - (float)left, b = y - (float)above;
  const float upper =
      (1 - a) * pixel(p, above, left, channel) + a * pixel(p, above, right, channel);
  const float lower =
      (1 - a) * pixel(p, below, left, channel) + a * pixel(p, below, right, channel);
  return rintf((1 - b) * upper + b * lower);
}

static void prepare(float *to, const struct picture *p, struct preparation *s) {
  if (s->short_side > 0) {
    const float smaller = (float)(p->rows < p->columns ? p->rows : p->columns);
    s->rows = (int32_t)floorf((float)(p->rows * s->short_side) / smaller + 0.5f);
    s->columns = (int32_t)floorf((float)(p->columns * s->short_side) / smaller + 0.5f);
    s->top = (s->rows - s->height) / 2;
    s->left = (s->columns - s->width) / 2;
  }
  for (int32_t c = 0; c < s->channels; ++c) {
    for (int32_t row = 0; row < s->height; ++row) {
      for (int32_t column = 0; column < s->width; ++column, ++to) {
        const int32_t y = row + s->top, x = column + s->left;
        float v;
        if (s->channels == 1 && s->picture_channels == 3)
          v = 0.299f * resized_pixel(p, s, y, x, 0) + 0.587f * resized_pixel(p, s, y, x, 1) +
              0.114f * resized_pixel(p, s, y, x, 2);
        else
          v = resized_pixel(p, s, y, x, s->is_blue ? s->channels - 1 - c : c);
        const int32_t at = (c * s->height + row) * s->width + column;
        if (s->means > 0) v -= s->mean[s->means == 1 ? 0 : s->means == s->channels ? c : at];
        *to = v * s->scale;
      }
    }
  }
}

static void print_largest(const float *results, int32_t count, const char *const *labels) {
  const int32_t shown = count < 5 ? count : 5;
  int32_t before[5];
  for (int32_t place = 0; place < shown; ++place) {
    int32_t best = -1;
    for (int32_t i = 0; i < count; ++i) {
      int taken = 0;
      for (int32_t k = 0; k < place; ++k) taken |= before[k] == i;
      if (!taken && (best < 0 || results[i] > results[best])) best = i;
    }
    before[place] = best;
    if (labels)
      printf("%.4f  %s\n", (double)results[best], labels[best]);
    else
      printf("%.4f  class %d\n", (double)results[best], (int)best);
  }
}
