// Capture: GPU work recorded once and launched with one call (a CUDA graph). A launch costs
// microseconds however many kernels the graph has.
#pragma once

#include <functional>
#include <memory>

#include "device/context.h"

namespace crema {

class Capture {
 public:
  Capture();
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // Records what `work` queues on the context's stream, without running it. `work` must have run
  // once before, so that the libraries have loaded their kernels; it must not allocate memory, wait
  // for the device or copy from host memory. Error when the device cannot record it.
  void record(Context& context, const std::function<void()>& work);
  bool recorded() const;
  void clear();
  // Launches the recorded work on the context's stream.
  void launch(Context& context) const;

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
};

}  // namespace crema
