// Range: names a scope of the program for NVIDIA's profilers (NVTX), from construction to
// destruction. Without a profiler, and in builds without CUDA, it costs next to nothing.
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
