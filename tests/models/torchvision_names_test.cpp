// models/*/torchvision.names: each map has every parameter of its net once, in a form that the net's weights can be written
// in and read from. (tests/weights/compare_torch.py holds them against PyTorch.)
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "net/deploy/deploy.h"
#include "net/prototxt/net_input.h"
#include "net/prototxt/settings.h"
#include "net/weights/tensor_file.h"
#include "net/weights/torch_weights.h"
#include "support.h"

namespace crema::tests {
namespace torchvision_names_test {

struct Row {
  const char* model;
  std::vector<std::string> settings = {};
  const char* input = "1x3x224x224";
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.model; }

std::filesystem::path models() {
  return std::filesystem::path(CREMA_TEST_DATA).parent_path() / "models";
}

const Row kRows[] = {
    {"alexnet_torchvision", {"layer[fc6].inner_product_param.num_output=16"}},
    {"convnext", {"size=tiny"}},
    {"convnext", {"size=small"}},
    {"densenet", {"depth=169"}},
    {"efficientnet"},
    {"inception_v3", {}, "1x3x299x299"},
    {"mobilenet_v2"},
    {"mobilenet_v3"},
    {"resnet", {"depth=34"}},
    {"resnet", {"depth=50"}},
    {"shufflenet_v2"},
    {"squeezenet"},
    {"vgg", {"depth=13", "layer[fc6].inner_product_param.num_output=16"}},
    {"vgg", {"depth=11", "bn=true", "layer[fc6].inner_product_param.num_output=16"}},
    {"vit", {"width=192", "blocks=4"}},
};

TEST(TorchvisionNames, AreAllTested) {
  std::set<std::string> there, tested;
  for (const auto& entry : std::filesystem::directory_iterator(models()))
    if (std::filesystem::exists(entry.path() / "torchvision.names"))
      there.insert(entry.path().filename());
  for (const Row& row : kRows) tested.insert(row.model);
  EXPECT_EQ(there, tested);
}

class TorchvisionNamesTest : public testing::TestWithParam<Row> {};

TEST_P(TorchvisionNamesTest, HaveEveryParameter) {
  const Row& row = GetParam();
  const std::string folder = (models() / row.model).string();
  Context context(Device::cpu);
  Settings settings(row.settings);
  const NetInput input =
      read_net_input(folder + "/train_val.prototxt", TEST, {}, context.log(), &settings);
  DeployOptions options;
  options.assume = cat("data=", row.input, ",label=1");
  options.folder = folder;
  options.where = input.options.where;
  Net net(context, deploy(input.net, options, context.log()).net, {});
  std::vector<std::vector<float>> before;
  for (Parameter& parameter : net.parameters()) {
    // A convolution's own fillers may be 0, which any mistake would keep.
    std::vector<float> values = to_floats(context, parameter.data);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(1 + i % 97) / 97;
    if (parameter.index == 2 && values.size() == 1) values = {1};  // what BatchNorm divides by
    from_floats(context, values.data(), parameter.data);
    before.push_back(std::move(values));
  }
  const WeightNames names =
      read_weight_names(folder + "/torchvision.names", Settings(row.settings).variables());
  const TorchInput images{
      "data", {255 * names.mean[2], 255 * names.mean[1], 255 * names.mean[0]}, 0.0175f, "test"};
  const Folder made;
  const std::string file = made.file("w.safetensors");
  save_torch_weights(net, names, images, file);
  for (Parameter& parameter : net.parameters()) {
    const std::vector<float> none(static_cast<size_t>(parameter.shape.count()), -1);
    from_floats(context, none.data(), parameter.data);
  }
  load_torch_weights(net, *open_tensor_file(file), names, images);
  for (size_t id = 0; id < before.size(); ++id) {
    const std::vector<float> after = to_floats(context, net.parameters()[id].data);
    ASSERT_EQ(after.size(), before[id].size());
    for (size_t i = 0; i < after.size(); ++i)
      ASSERT_NEAR(after[i], before[id][i], 1e-6) << net.parameters()[id].layer;
  }
}

INSTANTIATE_TEST_SUITE_P(All, TorchvisionNamesTest, testing::ValuesIn(kRows));

}  // namespace torchvision_names_test
}  // namespace crema::tests
