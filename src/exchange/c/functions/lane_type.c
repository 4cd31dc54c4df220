/* Vectors of floats that fill a register, or single floats where there are none. */
#if defined(__GNUC__) && defined(__AVX__)
#define LANES 8
#elif defined(__GNUC__) && (defined(__SSE__) || defined(__ARM_NEON))
#define LANES 4
#else
#define LANES 1
#endif
#if LANES > 1
typedef float lanes __attribute__((vector_size(4 * LANES)));
#else
typedef float lanes;
#endif

/* Keeps a vector in its register, where GCC would load it again for every product. */
#if LANES > 1 && !defined(__clang__) && defined(__SSE__)
#define KEEP(v) __asm__("" : "+x"(v))
#elif LANES > 1 && !defined(__clang__) && defined(__aarch64__)
#define KEEP(v) __asm__("" : "+w"(v))
#else
#define KEEP(v) ((void)(v))
#endif

/* Before a loop of constant length, which becomes vectors: compilers would unroll it first, and leave scalars. */
#if defined(__clang__)
#define VECTORS _Pragma("clang loop unroll(disable)")
#elif defined(__GNUC__) && __GNUC__ >= 8
#define VECTORS _Pragma("GCC unroll 1")
#else
#define VECTORS
#endif
