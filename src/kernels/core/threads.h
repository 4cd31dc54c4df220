// How many CPU threads a kernel may use; 1 in a build without OpenMP.
#pragma once

#include <exception>
#include <mutex>

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

// The number of this thread in its parallel region, from 0.
inline int thread_number() {
#ifdef _OPENMP
  return omp_get_thread_num();
#else
  return 0;
#endif
}

// The first exception in a parallel region: it may not leave the region, or OpenMP ends the program.
// What could throw there (memory, a kernel that is called) goes through run(); rethrow() follows
// behind the region.
class RegionError {
 public:
  template <typename Body>
  void run(const Body& body) noexcept {
    try {
      body();
    } catch (...) {
      const std::scoped_lock lock(mutex_);
      if (!first_) first_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

}  // namespace crema
