// Sizes that no blob can have: an Error that names the layer, before any kernel divides by them.
#include <gtest/gtest.h>

#include "net/net.h"
#include "net/prototxt/prototxt.h"
#include "support.h"

namespace crema::tests {
namespace extents_test {

std::string message_of(const std::string& dims, const std::string& layer) {
  const NetFile file =
      parse_net_text(cat("layer { name: \"data\" type: \"Input\" top: \"x\" input_param { shape { ",
                         dims, " } } }\n", layer),
                     "net.prototxt");
  Context context(Device::cpu);
  NetOptions options;
  options.where = [&](int index) { return file.where(index); };
  return error_of([&] { Net(context, file.net, options); });
}

TEST(Extents, EachIsAtLeastOne) {
  for (const char* dims : {"dim: 0 dim: 3", "dim: 2 dim: -1"}) {
    const std::string message = message_of(dims, "");
    expect_part(message, "net.prototxt:1:1: layer \"data\": top \"x\" would have the shape ");
    expect_part(message, "each extent must be at least 1");
  }
  expect_part(message_of("dim: 2 dim: 3",
                         "layer { name: \"s\" type: \"Slice\" bottom: \"x\" top: \"a\" top: \"b\" "
                         "slice_param { slice_point: 3 } }"),
              "layer \"s\": ");
}

TEST(Extents, OfABlobFitInMemoryThatExists) {
  expect_part(message_of("dim: 2147483647 dim: 2147483647", ""), "more than 2^48 values");
  expect_part(message_of("dim: 4000000000 dim: 4000000000 dim: 4000000000", ""),
              "more than 2^48 values");
}

TEST(Extents, AreAtMost32AsInCaffe) {
  std::string dims;
  for (int axis = 0; axis < 33; ++axis) dims += "dim: 1 ";
  expect_part(message_of(dims, ""),
              "net.prototxt:1:1: layer \"data\": top \"x\" would have 33 axes");
}

TEST(Extents, OfAParameterToo) {
  const std::string message =
      message_of("dim: 2 dim: 300000",
                 "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"x\" top: \"y\" "
                 "inner_product_param { num_output: 2147483647 } }");
  expect_part(message, "net.prototxt:2:1: layer \"ip\": parameter 0 would have the shape ");
  expect_part(message, "more than 2^48 values");
}

}  // namespace extents_test
}  // namespace crema::tests
