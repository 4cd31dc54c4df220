// The implementations behind make_conv, and what they share. Each may decline a case: it then
// returns null and sets the reason.
#pragma once

#include <string>

#include "base/host_device.h"
#include "kernels/conv/conv.h"

namespace crema {

std::unique_ptr<LinearKernel> make_conv_autotuned(Context& context, const ConvCase& c,
                                                  std::string& reason);
std::unique_ptr<LinearKernel> make_conv_space_to_depth(Context& context, const ConvCase& c,
                                                       std::string& reason);
std::unique_ptr<LinearKernel> make_conv_per_group(Context& context, const ConvCase& c,
                                                  std::string& reason);
std::unique_ptr<LinearKernel> make_conv_stem_7x7s2(Context& context, const ConvCase& c,
                                                   std::string& reason);
std::unique_ptr<LinearKernel> make_conv_stem_3x3(Context& context, const ConvCase& c,
                                                 std::string& reason);
std::unique_ptr<LinearKernel> make_conv_depthwise(Context& context, const ConvCase& c,
                                                  std::string& reason);
std::unique_ptr<LinearKernel> make_conv_depthwise_tensor(Context& context, const ConvCase& c,
                                                         std::string& reason);
std::unique_ptr<LinearKernel> make_conv_cudnn(Context& context, const ConvCase& c,
                                              std::string& reason);
std::unique_ptr<LinearKernel> make_conv_onednn(Context& context, const ConvCase& c,
                                               std::string& reason);
std::unique_ptr<LinearKernel> make_conv_im2col(Context& context, const ConvCase& c,
                                               std::string& reason);
// The same for many images at once, on a GPU. limit: of the workspace in bytes, unless one image
// needs more.
std::unique_ptr<LinearKernel> make_conv_im2col_batched(const ConvCase& c, std::string& reason,
                                                       size_t limit = size_t{256} << 20);
std::unique_ptr<LinearKernel> make_conv_reference(Context& context, const ConvCase& c,
                                                  std::string& reason);

// Whether cuDNN has engines for a case on a card that is not in this machine. `card`: see
// CudnnTarget. groups_apart: for the implementation "per_group". A build without
// cuDNN has no such function.
struct CudnnSupport {
  bool chosen = false;
  bool fused = false;            // the forward plan includes bias and ReLU
  bool sums = false;             // a forward plan with per-channel sums exists
  bool affine = false;           // one that also applies the preceding normalization to x exists
  bool affine_gradient = false;  // likewise for the gradient of the weights
  std::string reason;            // when the case is not supported
};
CudnnSupport conv_cudnn_support(const ConvCase& c, const std::string& card,
                                bool groups_apart = false);

// The parameters of a case, in a form that a GPU can copy.
struct ConvGeometry {
  int axes = 0;  // spatial
  int64_t images = 0, groups = 1;
  int64_t in_channels = 0, out_channels = 0;  // of one group
  int64_t in_points = 1, out_points = 1, taps = 1;
  int64_t in[kMaxSpatialAxes], out[kMaxSpatialAxes], kernel[kMaxSpatialAxes];
  int64_t stride[kMaxSpatialAxes], pad[kMaxSpatialAxes], dilation[kMaxSpatialAxes];

  CREMA_HD int64_t all_in_channels() const { return in_channels * groups; }
  CREMA_HD int64_t all_out_channels() const { return out_channels * groups; }
};
ConvGeometry geometry_of(const ConvCase& c);

}  // namespace crema
