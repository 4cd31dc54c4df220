// Each layer type has a block to paste, and a net of it can be made.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <map>

#include "layers/layer_types.h"
#include "net/net.h"
#include "proto/net.pb.h"
#include "tools/program.h"

namespace crema::tests {
namespace type_examples_test {

// An Input layer with a top for each bottom of the layer.
std::string inputs_of(const LayerParameter& layer, const std::string& shapes) {
  std::string tops, dims;
  const std::vector<std::string> each = split(shapes, ' ');
  EXPECT_EQ(static_cast<int>(each.size()), layer.bottom_size()) << layer.type();
  for (size_t i = 0; i < each.size(); ++i) {
    tops += cat(" top: \"", layer.bottom(static_cast<int>(i)), "\"");
    dims += " shape {";
    for (const std::string& dim : split(each[i], 'x')) dims += " dim: " + dim;
    dims += " }";
  }
  return cat("layer { name: \"in\" type: \"Input\"", tops, " input_param {", dims, " } }\n");
}

TEST(LayerExamples, OfEveryTypeMakeANet) {
  std::map<std::string, int> count;
  Context context(Device::cpu);
  for (const std::string& row :
       split(read_file(CREMA_TEST_DATA "/../tools/docs/layer_examples.rows"), '\n')) {
    if (row.empty() || row[0] == '#') continue;
    const size_t bar = row.find(" | ");
    ASSERT_NE(bar, std::string::npos) << row;
    const std::string bottoms = row.substr(0, bar), text = row.substr(bar + 3);
    LayerParameter layer;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &layer)) << row;
    ++count[layer.type()];
    if (bottoms == "files") continue;
    NetParameter net;
    const std::string inputs = bottoms == "-" ? "" : inputs_of(layer, bottoms);
    ASSERT_TRUE(
        google::protobuf::TextFormat::ParseFromString(cat(inputs, "layer { ", text, " }"), &net));
    NetOptions options;
    options.state.set_phase(text.find("phase: TEST") != std::string::npos ? TEST : TRAIN);
    try {
      const Net made(context, net, options);
    } catch (const Error& error) {
      ADD_FAILURE() << layer.type() << ": " << error.what();
    }
  }
  const std::vector<std::string> types = layer_types();
  for (const std::string& type : types) EXPECT_EQ(count[type], 1) << type;
  for (const auto& [type, number] : count)
    EXPECT_EQ(std::count(types.begin(), types.end(), type), 1) << type;
}

TEST(LayerExamples, EndTheDocumentation) {
  const Folder folder;
  const std::string text = run(folder, "crema layers Dropout").out;
  EXPECT_TRUE(
      ends_with(text,
                "\nTo paste (bottoms such as 32x256):\n\nlayer {\n  name: \"drop1\"\n  type: "
                "\"Dropout\"\n  bottom: \"ip1\"\n  top: \"ip1\"\n  dropout_param {\n    "
                "dropout_ratio: 0.5\n  }\n}\n"))
      << text;
  expect_part(run(folder, "crema layers Conv2d").err, "did you mean \"Convolution\"?");
  expect_part(run(folder, "crema fields layer.dropout_param").out,
              "DropoutParameter\n  dropout_ratio (float, default 0.5)\n");
  expect_part(run(folder, "crema fields solver").out, "\n  base_lr (float)\n");
  expect_part(run(folder, "crema fields layer.droput_param").err,
              "there is no block \"droput_param\" (did you mean \"dropout_param\"?)");
  expect_part(run(folder, "crema fields base_lr").err, "\"base_lr\" is a single field of");
}

}  // namespace type_examples_test
}  // namespace crema::tests
