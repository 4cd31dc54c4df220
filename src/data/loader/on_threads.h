// on_threads: runs work that waits for a disk on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace crema {

// Calls work(i) once for each i from 0 to count - 1. Started in this order, `piece` of them by one
// thread at a time. An exception ends all; of several the one with the lowest i is thrown.
template <typename Work>
void on_threads(int64_t count, int64_t piece, const Work& work) {
  constexpr int64_t kMostThreads =
      16;  // as deep as the queue of a disk; more than cores, they wait
  std::atomic<int64_t> next = 0;
  std::mutex mutex;
  std::exception_ptr error;
  int64_t error_at = count;
  const auto run = [&] {
    for (int64_t first; (first = next.fetch_add(piece)) < count;) {
      const int64_t last = std::min(count, first + piece);
      for (int64_t i = first; i < last; ++i) {
        try {
          work(i);
        } catch (...) {
          const std::lock_guard<std::mutex> lock(mutex);
          if (i < error_at) {
            error = std::current_exception();
            error_at = i;
          }
          next = count;
          return;
        }
      }
    }
  };
  std::vector<std::thread> threads;
  const int64_t more = std::min(kMostThreads, (count + piece - 1) / piece) - 1;
  try {
    for (int64_t i = 0; i < more; ++i) threads.emplace_back(run);
  } catch (const std::system_error&) {
    // With fewer of them it takes longer.
  }
  run();
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace crema
