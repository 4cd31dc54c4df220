// The means in weight files of FlowNet, which DataAugmentation subtracts.
#include <gtest/gtest.h>

#include "net/graph/filter.h"
#include "net/prototxt/prototxt.h"
#include "net/weights/weights.h"
#include "support.h"

namespace crema::tests {
namespace flownet_weights_test {

// FlowNet's file has a count, the mean image of the training's crops and the mean of each channel.
TEST(FlowNetWeights, GiveTheMeanOfChannelsOrPixels) {
  const Folder folder;
  Context context(Device::cpu);
  const std::pair<const char*, std::vector<float>> kinds[] = {
      {"mean_per_pixel: false", {5, 6}}, {"crop_height: 1 crop_width: 2", {1, 2, 3, 4}}};
  NetParameter stored;
  LayerParameter& layer = *stored.add_layer();
  layer.set_name("aug");
  const std::pair<std::vector<int64_t>, std::vector<float>> blobs[] = {
      {{1, 1, 1, 1}, {2000}}, {{1, 2, 1, 2}, {1, 2, 3, 4}}, {{1, 2, 1, 1}, {5, 6}}};
  for (const auto& [shape, data] : blobs) {
    BlobProto& blob = *layer.add_blobs();
    blob.mutable_shape()->mutable_dim()->Add(shape.begin(), shape.end());
    blob.mutable_data()->Add(data.begin(), data.end());
  }
  folder.write("aug.caffemodel", stored.SerializeAsString());
  for (const auto& [kind, wanted] : kinds) {
    const NetFile file = parse_net_text(
        cat("layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: [1, 2, 3, 4] } } "
            "} layer { name: 'aug' type: 'DataAugmentation' bottom: 'x' top: 'y' "
            "augmentation_param { recompute_mean: 1000 ",
            kind, " } }"),
        "net");
    NetOptions options;
    options.state = net_state(TEST, file.net, {});
    Net net(context, file.net, options);
    load_weights(net, folder.file("aug.caffemodel"));
    ASSERT_EQ(net.parameters().size(), 1u);
    EXPECT_EQ(to_floats(context, net.parameters()[0].data), wanted);
  }
}

}  // namespace flownet_weights_test
}  // namespace crema::tests
