// How many CPU threads a kernel may use; 1 in a build without OpenMP.
#pragma once

#ifdef _OPENMP
#include <omp.h>
#endif

namespace crema {

// Threads that a parallel region opened here would get: 1 inside a parallel region.
inline int threads_here() {
#ifdef _OPENMP
  return omp_in_parallel() ? 1 : omp_get_max_threads();
#else
  return 1;
#endif
}

// Of this thread in its parallel region, from 0 on.
inline int thread_number() {
#ifdef _OPENMP
  return omp_get_thread_num();
#else
  return 0;
#endif
}

}  // namespace crema
