/* The place in a ring of `span` rows of a row that is less than two rounds behind the beginning. */
static size_t ring_row(int32_t row, int32_t span) { return row < span ? row : row - span; }
