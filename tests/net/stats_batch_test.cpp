// bn_stats_batch_size of a net: statistics of parts of a batch, for every BatchNorm that says
// nothing itself.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "net/net.h"

namespace crema::tests {
namespace stats_batch_test {

TEST(StatsBatch, IsThatOfLayersWithoutOne) {
  NetParameter net;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "bn_stats_batch_size: 2 "
      "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 4 dim: 1 } } } "
      "layer { name: 'parts' type: 'BatchNorm' bottom: 'x' top: 'y' batch_norm_param { eps: 0 } } "
      "layer { name: 'all' type: 'BatchNorm' bottom: 'x' top: 'z' "
      "  batch_norm_param { eps: 0 stats_batch_size: 4 } } ",
      &net));
  Context context(Device::cpu);
  NetOptions options;
  options.state.set_phase(TRAIN);
  options.keep_blobs = true;
  Net n(context, net, options);
  from_doubles(context, std::vector<double>{1, 3, 10, 30}.data(), n.input("x"));
  n.forward(0);
  const std::vector<double> y = to_doubles(context, n.blob("y")),
                            z = to_doubles(context, n.blob("z"));
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(y[i], i % 2 == 0 ? -1 : 1, 1e-6);
  // Mean 11, variance 131.5.
  EXPECT_NEAR(z[3], 19 / std::sqrt(131.5), 1e-6);
  // The stored mean is 20 + 0.999 * 2 in `parts`, which two parts made.
  EXPECT_NEAR(to_doubles(context, n.parameters()[0].data)[0], 20 + 0.999 * 2, 1e-5);
}

}  // namespace stats_batch_test
}  // namespace crema::tests
