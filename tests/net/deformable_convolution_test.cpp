// DeformableConvolution against Convolution with the same weights, on a row of pixels.
#include <gtest/gtest.h>

#include "net/net.h"
#include "net/prototxt/prototxt.h"
#include "support.h"

namespace crema::tests {
namespace deformable_convolution_test {

// The tops of a convolution with taps of 1, 2 and -1, and of one whose taps are moved.
std::vector<std::vector<float>> tops(const std::vector<float>& offsets) {
  Context context(Device::cpu);
  const std::string parameters =
      "{ num_output: 1 kernel_h: 1 kernel_w: 3 pad_w: 1 pad_h: 0 bias_term: false } blobs { shape "
      "{ dim: [1, 1, 1, 3] } data: [1, 2, -1] }";
  const NetFile file = parse_net_text(
      cat("layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: [1, 1, 1, 5] } } } "
          "layer { name: 'd' type: 'Input' top: 'd' input_param { shape { dim: [1, 6, 1, 5] } } } "
          "layer { name: 'a' type: 'Convolution' bottom: 'x' top: 'a' convolution_param ",
          parameters,
          " } layer { name: 'b' type: 'DeformableConvolution' bottom: 'x' bottom: 'd' top: 'b' "
          "deformable_convolution_param ",
          parameters, " }"),
      "net");
  Net net(context, file.net, {});
  const float x[] = {1, 2, 4, 8, 16};
  from_floats(context, x, net.blob("x"));
  from_floats(context, offsets.data(), net.blob("d"));
  net.forward(0);
  return {to_floats(context, net.blob("a")), to_floats(context, net.blob("b"))};
}

// Channels of offsets: rows and columns of the three taps.
std::vector<float> moved(const std::vector<float>& channels) {
  std::vector<float> offsets;
  for (const float offset : channels) offsets.insert(offsets.end(), 5, offset);
  return offsets;
}

TEST(DeformableConvolution, ReadsWhereTheOffsetsSay) {
  struct Row {
    const char* what;
    std::vector<float> offsets, top;
  };
  const std::vector<float> plain = {0, 1, 2, 4, 40};
  const Row rows[] = {
      {"without offsets it is the convolution", {0, 0, 0, 0, 0, 0}, plain},
      {"columns w - 1/2, w + 1 and w - 1/2, the first one of each outside",
       {0, 0.5f, 0, 1, 0, -1.5f},
       {4, 8, 16, 32, 0}},
      {"half a row below the only one is that row", {0.5f, 0, 0.5f, 0, 0.5f, 0}, plain},
      {"half a row above is outside", {-0.5f, 0, -0.5f, 0, 0, 0}, {-2, -4, -8, -16, 0}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    const auto found = tops(moved(row.offsets));
    EXPECT_EQ(found[0], plain);
    EXPECT_EQ(found[1], row.top);
  }
}

}  // namespace deformable_convolution_test
}  // namespace crema::tests
