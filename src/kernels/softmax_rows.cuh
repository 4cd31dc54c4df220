// Launching a kernel of softmax with a block for each place. Only for device code.
#pragma once

#include <algorithm>

#include "device/launch.h"
#include "kernels/softmax.h"

namespace crema {

// Launches kernel(arguments...) and returns true where the classes of a place lie next to each
// other and are many enough to be worth a block.
template <typename... Parameters, typename... Arguments>
bool launch_by_rows(Context& context, const SoftmaxView& view, void (*kernel)(Parameters...),
                    const Arguments&... arguments) {
  if (context.device() != Device::gpu || view.inner != 1 || view.classes < 32 || view.outer == 0)
    return false;
  const int64_t threads = std::clamp<int64_t>((view.classes + 31) / 32 * 32, 32, 256);
  launch(context.gpu(), kernel, {static_cast<unsigned>(view.outer), static_cast<unsigned>(threads)},
         arguments...);
  return true;
}

}  // namespace crema
