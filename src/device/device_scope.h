// A thread that comes to work with contexts which another thread has made.
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

// Waits for all that was queued on the current GPU, by other libraries too. Error for a failure there.
void wait_for_gpu();

// OpenMP minds the affinity mask, but not control groups: threads beyond their grant would be
// stopped for most of each period, and the others wait for them. Holds for the calling thread.
void limit_threads();
// The number of threads that the calling thread's loops run on.
int cpu_threads();

}  // namespace crema
