// Sizes that no blob can have: an Error that names the layer, before any kernel divides by them.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "layers/vision/pooling_window.h"
#include "net/net.h"
#include "net/preparation.h"
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

// Products of extents that no blob can have: how an input is prepared is known before its size is
// checked.
TEST(Extents, OfAnImageMayBeLarge) {
  LayerParameter layer;
  layer.set_type("Input");
  layer.mutable_transform_param()->set_scale(0.5f);
  const NetPreparation made =
      preparation_of(layer, "data", {1, 3, int64_t{1} << 62, 4}, "", {}, silent_log());
  ASSERT_EQ(made.input_size(), 1);
  EXPECT_EQ(made.input(0).channels(), InputPreparation::BGR);
}

// Only windows at the edges can be empty: looking at all would take minutes.
TEST(Extents, OfPoolingsAreLookedAtFromTheEdges) {
  const auto empty = [](const std::string& fields, int64_t extent) {
    LayerParameter message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        cat("name: 'p' type: 'Pooling' bottom: 'x' top: 'y' pooling_param { ", fields, " }"),
        &message));
    Context context(Device::cpu);
    const auto layer = make_layer(message, false, "");
    const Shape x{1, 1, 5, extent};
    layer->setup(context, {x});
    return empty_windows(*layer, {x});
  };
  EXPECT_EQ(empty("kernel_size: 1 stride: 2", (int64_t{1} << 40) + 1), "");
  EXPECT_EQ(empty("kernel_size: 3 pad: 1 stride: 1", 1000), "");
  expect_part(empty("kernel_h: 1 kernel_w: 1 stride_h: 1 stride_w: 3", 5), "axis 3");
}

}  // namespace extents_test
}  // namespace crema::tests
