// For threads that use contexts which another thread created.
#pragma once

namespace crema {

// Makes a GPU the calling thread's current one, and at the end the one that was so before.
class DeviceScope {
 public:
  explicit DeviceScope(int gpu);  // -1, or one that does not exist: changes nothing
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int before_ = -1;
};

// Waits for all work queued on the current GPU, also by other libraries. Error for a failure there.
void wait_for_gpu();

// OpenMP respects the affinity mask, but not control groups: threads beyond their quota would be
// stopped for most of each period, and the others would wait for them. Applies to the calling
// thread.
void limit_threads();
// Runs the calling thread's loops on this many threads, or on OMP_THREAD_LIMIT if that is less.
// Without OpenMP there is one.
void set_cpu_threads(int threads);
// The number of threads that the calling thread's loops run on.
int cpu_threads();

}  // namespace crema
