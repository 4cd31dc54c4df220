/* Rows that are normalized by their mean and, if `divides`, by their deviation. */
struct mvn {
  int32_t rows, count, divides;
  float epsilon;
};
