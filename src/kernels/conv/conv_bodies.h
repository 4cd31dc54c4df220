// The implementations behind make_conv, and what they share. Each may refuse a case: null, with the
// reason.
#pragma once

#include <string>

#include "base/host_device.h"
#include "kernels/conv/conv.h"

namespace crema {

std::unique_ptr<WeightedSum> make_conv_fastest(Context& context, const ConvCase& c,
                                               std::string& reason);
std::unique_ptr<WeightedSum> make_conv_blocks(Context& context, const ConvCase& c,
                                              std::string& reason);
std::unique_ptr<WeightedSum> make_conv_groups(Context& context, const ConvCase& c,
                                              std::string& reason);
std::unique_ptr<WeightedSum> make_conv_rows(Context& context, const ConvCase& c,
                                            std::string& reason);
std::unique_ptr<WeightedSum> make_conv_pixels(Context& context, const ConvCase& c,
                                              std::string& reason);
std::unique_ptr<WeightedSum> make_conv_depthwise(Context& context, const ConvCase& c,
                                                 std::string& reason);
std::unique_ptr<WeightedSum> make_conv_tensor(Context& context, const ConvCase& c,
                                              std::string& reason);
std::unique_ptr<WeightedSum> make_conv_cudnn(Context& context, const ConvCase& c,
                                             std::string& reason);
std::unique_ptr<WeightedSum> make_conv_onednn(Context& context, const ConvCase& c,
                                              std::string& reason);
std::unique_ptr<WeightedSum> make_conv_im2col(Context& context, const ConvCase& c,
                                              std::string& reason);
std::unique_ptr<WeightedSum> make_conv_plain(Context& context, const ConvCase& c,
                                             std::string& reason);

// Whether cuDNN has engines for a case on a card that is not here. `card`: see CudnnTarget.
// groups_apart: for the implementation "groups".
struct CudnnSupport {
  bool served = false;
  bool fused = false;   // bias and ReLU are in the forward plan
  bool sums = false;    // there is a forward plan with the sums of channels
  bool affine = false;  // and one that also makes x of what is before a batch normalization
  bool affine_gradient = false;  // and one of the weights' gradient from that
  std::string reason;            // when it is not served
};
CudnnSupport conv_cudnn_support(const ConvCase& c, const std::string& card,
                                bool groups_apart = false);

// The numbers of a case, in a form that a GPU can copy.
struct ConvGeometry {
  int axes = 0;  // spatial
  int64_t images = 0, groups = 1;
  int64_t in_channels = 0, out_channels = 0;  // of one group
  int64_t in_points = 1, out_points = 1, taps = 1;
  int64_t in[kMostSpatialAxes], out[kMostSpatialAxes], kernel[kMostSpatialAxes];
  int64_t stride[kMostSpatialAxes], pad[kMostSpatialAxes], dilation[kMostSpatialAxes];

  CREMA_HD int64_t all_in_channels() const { return in_channels * groups; }
  CREMA_HD int64_t all_out_channels() const { return out_channels * groups; }
};
ConvGeometry geometry_of(const ConvCase& c);

}  // namespace crema
