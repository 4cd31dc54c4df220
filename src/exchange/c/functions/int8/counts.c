/* Vectors for sums of few products of 8-bit integers: floats where vectors of these fill a register, which
   are exact below 2^24, or else integers. Their memory is that of floats, so integers are copied.
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

/* Adds a vector of sums to `start`. */
static inline void store_counts(int32_t *to, counts v, int32_t start) {
#if LANES > 1 && (defined(__clang__) || __GNUC__ >= 9)
  typedef int32_t integers __attribute__((vector_size(4 * LANES)));
  const integers sums = __builtin_convertvector(v, integers) + start;
  memcpy(to, &sums, sizeof sums);
#else
  count_type parts[LANES];
  memcpy(parts, &v, sizeof v);
  for (int32_t i = 0; i < LANES; ++i) to[i] = (int32_t)parts[i] + start;
#endif
}

/* Bytes become counts; flip: 128 if they are signed, or 0. */
#if LANES == 8 && defined(__AVX2__)
typedef uint8_t bytes __attribute__((vector_size(32)));
#define FOUR(a, b, c, d) a, a, a, a, b, b, b, b, c, c, c, c, d, d, d, d
#ifdef __clang__
#define SHUFFLE(v, ...) __builtin_shufflevector(v, v, __VA_ARGS__)
#else
#define SHUFFLE(v, ...) __builtin_shuffle(v, (bytes){__VA_ARGS__})
#endif

/* The eight bytes at `low` and those at `high`, twice. */
static inline bytes load_bytes(const uint8_t *low, const uint8_t *high) {
  uint64_t a, b;
  memcpy(&a, low, sizeof a);
  memcpy(&b, high, sizeof b);
  typedef uint64_t words __attribute__((vector_size(32)));
  return (bytes)(words){a, b, a, b};
}

/* v has four times each byte. Loops would go from bytes to integers in several steps. */
static inline counts counts_of(bytes v, int32_t flip) {
  typedef int32_t integers __attribute__((vector_size(32)));
  return __builtin_convertvector((((integers)v & 255) ^ flip) - flip, counts);
}

static inline void put_eight(count_type *to, const uint8_t *from, int32_t flip) {
  const bytes v = load_bytes(from, from);
  const counts n = counts_of(SHUFFLE(v, FOUR(0, 1, 2, 3), FOUR(20, 21, 22, 23)), flip);
  memcpy(to, &n, sizeof n);
}
#elif LANES > 1
static inline void put_eight(count_type *restrict to, const uint8_t *restrict from, int32_t flip) {
  VECTORS
  for (int32_t i = 0; i < 8; ++i) to[i] = (count_type)((from[i] ^ flip) - flip);
}
#endif

static void put_counts(count_type *to, const uint8_t *from, int32_t count, int32_t flip) {
#if LANES > 1
  if (count >= 8) {
    for (int32_t i = 0; i + 8 < count; i += 8) put_eight(to + i, from + i, flip);
    put_eight(to + count - 8, from + count - 8, flip); /* some of them again */
    return;
  }
#endif
  for (int32_t i = 0; i < count; ++i) put_count(to + i, (from[i] ^ flip) - flip);
}
