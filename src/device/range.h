// Range: names a stretch of the program for NVIDIA's profilers (NVTX), from its making to its end.
// Without a profiler, and in builds without CUDA, it does next to nothing.
#pragma once

namespace crema {

class Range {
 public:
  explicit Range(const char* name);
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

}  // namespace crema
