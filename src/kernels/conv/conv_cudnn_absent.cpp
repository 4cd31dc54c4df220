// In place of cuDNN's convolutions in a build without it (device/cudnn.h).
#include "kernels/conv/conv_bodies.h"

namespace crema {

std::unique_ptr<LinearKernel> make_conv_cudnn(Context&, const ConvCase&, std::string& reason) {
  reason = "this build has no cuDNN";
  return nullptr;
}

std::unique_ptr<LinearKernel> make_conv_per_group(Context& context, const ConvCase& c,
                                                  std::string& reason) {
  return make_conv_cudnn(context, c, reason);
}

}  // namespace crema
