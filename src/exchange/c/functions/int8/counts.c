/* Vectors for sums of few products of 8-bit integers: floats where vectors of these fill a register, which
   are exact below 2^24, or else integers. Their memory is that of floats, so it is copied.
   needs: lane_type */
#if LANES > 1
typedef float count_type;
typedef lanes counts;
#else
typedef int32_t count_type;
typedef int32_t counts;
#endif

static void put_count(count_type *to, int32_t value) {
  const count_type v = (count_type)value;
  memcpy(to, &v, sizeof v);
}

static counts load_counts(const count_type *from) {
  counts v;
  memcpy(&v, from, sizeof v);
  return v;
}
