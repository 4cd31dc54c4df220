// `crema convert_weights`: PyTorch's weights under the names of a map, in the units of the net, the way
// back, and messages about files that do not fit.
#include <gtest/gtest.h>

#include <cstring>

#include "net/weights/tensor_file.h"
#include "net/weights/zip_file.h"
#include "proto/net.pb.h"
#include "tools/program.h"

namespace crema::tests {
namespace convert_weights_test {

struct Stored {
  std::string name, shape;
  std::vector<float> values;
};

std::string safetensors(const std::vector<Stored>& tensors) {
  std::string header = "{", data;
  for (const Stored& tensor : tensors) {
    const size_t begin = data.size(), bytes = tensor.values.size() * sizeof(float);
    data.append(reinterpret_cast<const char*>(tensor.values.data()), bytes);
    header +=
        cat(header.size() > 1 ? "," : "", "\"", tensor.name, "\":{\"dtype\":\"F32\",\"shape\":[",
            tensor.shape, "],\"data_offsets\":[", begin, ",", begin + bytes, "]}");
  }
  header += "}";
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

const char kNet[] = R"(
layer { name: "data" type: "Data" top: "data" top: "label"
        transform_param { crop_size: 2 mean_value: [51, 51, 51] scale: 0.5 }
        data_param { source: "none" batch_size: 1 } }
layer { name: "c" type: "Convolution" bottom: "data" top: "c"
        convolution_param { num_output: 1 kernel_size: 1 } }
layer { name: "n" type: "BatchNorm" bottom: "c" top: "c" batch_norm_param { eps: $eps } }
layer { name: "s" type: "Scale" bottom: "c" top: "c" scale_param { bias_term: true } }
layer { name: "f" type: "InnerProduct" bottom: "c" top: "f" inner_product_param { num_output: 2 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "f" bottom: "label" top: "loss" }
)";
const char kNames[] = R"(
mean: [0.2, 0.2, 0.4] std: [0.5, 0.25, 0.2]
pair { from: "stem.0" to: "c" }
pair { from: "stem.1" to: "n" }
pair { from: "fc" to: "f" }
)";

std::vector<Stored> weights() {
  return {{"fc.bias", "2", {1, 2}},          {"fc.weight", "2,4", {1, 2, 3, 4, 5, 6, 7, 8}},
          {"stem.0.bias", "1", {10}},        {"stem.0.weight", "1,3,1,1", {255, 510, 1020}},
          {"stem.1.bias", "1", {5}},         {"stem.1.num_batches_tracked", "1", {9}},
          {"stem.1.running_mean", "1", {6}}, {"stem.1.running_var", "1", {7}},
          {"stem.1.weight", "1", {8}}};
}

class ConvertWeights : public testing::Test {
 protected:
  ConvertWeights() {
    folder_.write("net.prototxt", std::string("$eps ?= 1e-5\n") + kNet);
    folder_.write("torchvision.names", kNames);
  }
  Outcome convert(const std::vector<Stored>& tensors, const std::string& flags = "") {
    folder_.write("w.safetensors", safetensors(tensors));
    return run(folder_, "crema convert_weights -model net.prototxt -from w.safetensors " + flags);
  }

  Folder folder_;
};

TEST_F(ConvertWeights, PutsEveryTensorInItsPlaceAndUnits) {
  const Outcome outcome = convert(weights());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.out, "stem.1.running_var   n[1]");
  expect_part(outcome.err, "Left out: 1 counters");
  expect_part(outcome.err, "Wrote 8 tensors to w.caffemodel");
  NetParameter net;
  ASSERT_TRUE(net.ParseFromString(folder_.read("w.caffemodel")));
  std::map<std::string, std::vector<float>> found;
  for (const LayerParameter& layer : net.layer()) {
    for (int i = 0; i < layer.blobs_size(); ++i)
      found[cat(layer.name(), i)].assign(layer.blobs(i).data().begin(),
                                         layer.blobs(i).data().end());
  }
  // y = (x - 51) / 2 of B, G, R; PyTorch's z = (x - 255 mean) / (255 std): 1 / (255 * 0.5 * std) a
  // channel, and for blue (51 - 102) / 51 = -1.
  const std::vector<float> weight = {1020 * 2 / 51.f, 510 * 2 / 63.75f, 255 * 2 / 127.5f};
  ASSERT_EQ(found["c0"].size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(found["c0"][i], weight[i], 1e-4) << i;
  EXPECT_NEAR(found["c1"][0], 10 - 1020, 1e-2);
  EXPECT_EQ(found["n0"], std::vector<float>{6});
  EXPECT_EQ(found["n1"], std::vector<float>{7});
  EXPECT_EQ(found["n2"], std::vector<float>{1});
  EXPECT_EQ(found["s0"], std::vector<float>{8});
  EXPECT_EQ(found["s1"], std::vector<float>{5});
  EXPECT_EQ(found["f0"], (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(found["f1"], (std::vector<float>{1, 2}));
}

// tests/goldens/torch/checkpoint.pth has the same weights.
TEST_F(ConvertWeights, TakesACheckpointOfTorchSaveAlike) {
  if (!ZipFile::available()) GTEST_SKIP() << "this build has no libzip";
  ASSERT_EQ(convert(weights(), "-output expected.caffemodel").code, 0);
  folder_.copy_golden("torch/checkpoint.pth", "net.pth");
  const Outcome outcome = run(folder_, "crema convert_weights -model net.prototxt -from net.pth");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(folder_.read("net.caffemodel"), folder_.read("expected.caffemodel"));
}

TEST_F(ConvertWeights, RefusesWhatDoesNotFitAndWritesNothing) {
  std::vector<Stored> missing = weights(), extra = weights(), wide = weights();
  missing[0].name = "fc.bios";
  extra.push_back({"aux.weight", "1", {1}});
  wide[1] = {"fc.weight", "2,3", {1, 2, 3, 4, 5, 6}};
  folder_.write("short.names", "pair { from: \"stem.0\" to: \"c\" }\n");
  folder_.write("wrong.names", "\npair { from: \"stem.0\" to: \"cc\" }\n");
  folder_.write("parts.names", "pair { from: \"a\" to: \"f\" tensor: [\"w:2:2\", \"b\"] }\n");
  folder_.write("count.names", "pair { from: \"a\" to: \"f\" tensor: \"w\" }\n");
  folder_.write("empty.names", "pair { from: \"a\" to: \"f\" tensor: [\"\", \"b\"] }\n");
  folder_.write("typo.names", "pair { form: \"stem.0\" to: \"c\" }\n");
  const struct {
    std::vector<Stored> tensors;
    std::string flags, message;
  } rows[] = {
      {missing, "", "torchvision.names:5:1: layer \"f\" needs \"fc.bias\""},
      {missing, "", "(did you mean \"fc.bios\"?)"},
      {extra, "", "w.safetensors: no layer takes aux.weight"},
      {wide, "", "\"fc.weight\" is 2x3, but layer \"f\" has 2x4 there"},
      {weights(), "-set eps=1e-3", "layer \"n\" has eps 0.001"},
      {weights(), "-names short.names", "no layer takes fc.bias, fc.weight, "},
      {weights(), "-names wrong.names", "wrong.names:2:1: the net has no layer \"cc\""},
      {weights(), "-names typo.names", "typo.names:1:8: "},
      {weights(), "-names parts.names", "tensor \"w:2:2\" names no part"},
      {weights(), "-names empty.names", "empty.names:1:1: tensor \"\" has no name"},
      {weights(), "-output w.safetensors", "the net's weights are written as .caffemodel or"},
      {weights(), "-names count.names", "has 2 parameters, but its pair names 1 tensors"},
  };
  for (const auto& row : rows) {
    const Outcome outcome = convert(row.tensors, row.flags);
    EXPECT_EQ(outcome.code, 1) << row.message;
    expect_part(outcome.err, row.message);
    EXPECT_FALSE(folder_.has("w.caffemodel")) << row.message;
  }
  folder_.write("w.pth", "no weights");
  const Outcome outcome = run(folder_, "crema convert_weights -model net.prototxt -from w.pth");
  EXPECT_EQ(outcome.code, 1);
  expect_part(outcome.err, "w.pth: the header would take");
  EXPECT_FALSE(folder_.has("w.caffemodel"));
}

std::map<std::string, std::vector<float>> tensors_of(const std::string& path) {
  std::map<std::string, std::vector<float>> tensors;
  const std::unique_ptr<TensorFile> file = open_tensor_file(path);
  for (const auto& [name, entry] : file->entries())
    tensors[cat(name, " ", entry.dtype, " ", entry.shape.brief())] = file->values(name);
  return tensors;
}

TEST_F(ConvertWeights, GivesPyTorchItsTensorsBack) {
  ASSERT_EQ(convert(weights()).code, 0);
  const Outcome outcome = run(
      folder_,
      "crema convert_weights -model net.prototxt -weights w.caffemodel -output back.safetensors");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.out, "stem.1.running_var   n[1]");
  expect_part(outcome.err,
              "\"c\" reads R, G, B, as (x / 255 - mean) / std with mean 0.2, 0.2, 0.4");
  auto before = tensors_of(folder_.file("w.safetensors")),
       after = tensors_of(folder_.file("back.safetensors"));
  EXPECT_EQ(before.erase("stem.1.num_batches_tracked F32 1"), 1u);
  const std::string counter = cat("stem.1.num_batches_tracked I64 ", Shape().brief());
  EXPECT_EQ(after[counter], std::vector<float>{0});
  after.erase(counter);
  ASSERT_EQ(before.size(), after.size());
  for (const auto& [name, values] : before) {
    ASSERT_EQ(after[name].size(), values.size()) << name;
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(after[name][i], values[i], 1e-3) << name;
  }
}

// Layers that PyTorch keeps in another way have numbered tensors, and come back bit for bit.
TEST_F(ConvertWeights, WritesAnyNetUnderItsOwnNames) {
  folder_.write("own/any.prototxt", R"(
layer { name: "data" type: "DummyData" top: "data" top: "target" dummy_data_param {
        shape { dim: 2 dim: 3 dim: 4 dim: 4 } shape { dim: 2 dim: 2 } data_filler { type: "gaussian" } } }
layer { name: "n" type: "BatchNorm" bottom: "data" top: "n" batch_norm_param { eps: 0.01 } }
layer { name: "s" type: "Scale" bottom: "n" top: "n" scale_param { bias_term: true } }
layer { name: "p" type: "PReLU" bottom: "n" top: "p" prelu_param { channel_shared: true } }
layer { name: "t" type: "InnerProduct" bottom: "p" top: "t"
        inner_product_param { num_output: 2 transpose: true weight_filler { type: "xavier" } } }
layer { name: "e" type: "InnerProduct" bottom: "t" top: "e"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "e" bottom: "target" top: "loss" }
)");
  folder_.write("solver.prototxt",
                "net: \"own/any.prototxt\" base_lr: 0.01 lr_policy: \"fixed\" max_iter: 1 "
                "snapshot_prefix: \"a\"");
  const std::string crema = "crema convert_weights -model own/any.prototxt ";
  ASSERT_EQ(run(folder_, "train -solver solver.prototxt").code, 0);
  const Outcome out = run(folder_, crema + "-weights a_iter_1.caffemodel -output a.safetensors");
  ASSERT_EQ(out.code, 0) << out.err;
  std::vector<std::string> names;
  for (const auto& tensor : tensors_of(folder_.file("a.safetensors")))
    names.push_back(tensor.first);
  EXPECT_EQ(join(names, ", "),
            "e.bias F32 2, e.weight F32 2x2, n.0 F32 3, n.1 F32 3, n.2 F32 1, p.weight F32 1, s.0 "
            "F32 3, s.1 F32 3, t.0 F32 48x2, t.1 F32 2");
  const Outcome back = run(folder_, crema + "-from a.safetensors -output b.caffemodel");
  ASSERT_EQ(back.code, 0) << back.err;
  const Outcome again = run(folder_, crema + "-weights b.caffemodel -output c.safetensors");
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(folder_.read("a.safetensors"), folder_.read("c.safetensors"));
}

// Parts of a tensor, its extents of 1, another eps, older names and modules that are left out.
TEST_F(ConvertWeights, KnowsWhatElseAMapSays) {
  folder_.write("other.names",
                "eps: 0.001 left_out: \"aux\"\n"
                "pair { from: \"stem.0\" to: \"c\" old_from: \"old\" }\n"
                "pair { from: \"stem.1\" to: \"n\" }\n"
                "pair { from: \"\" to: \"f\" tensor: [\"w:0:2\", \"b\"] leading_ones: 1 }\n");
  std::vector<Stored> tensors = weights();
  tensors[0].name = "b";
  tensors[1] = {"w", "1,4,4", {1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9, 9, 9, 9, 9}};
  tensors[2].name = "old.bias";
  tensors[3].name = "old.weight";
  tensors.push_back({"aux.fc.weight", "1", {1}});
  const std::string flags = "-names other.names -set eps=1e-3 ";
  const Outcome outcome = convert(tensors, flags);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.err,
              "1 counters (num_batches_tracked) and 1 tensors that the map leaves out");
  expect_part(outcome.err, "The values are unchanged: prepare the net's input as in PyTorch");
  const Outcome back = run(folder_, cat("crema convert_weights -model net.prototxt -weights ",
                                        "w.caffemodel -output back.safetensors ", flags));
  ASSERT_EQ(back.code, 0) << back.err;
  auto made = tensors_of(folder_.file("back.safetensors"));
  EXPECT_EQ(made["w F32 1x4x4"],
            (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(made["b F32 2"], (std::vector<float>{1, 2}));
  EXPECT_EQ(made["stem.0.weight F32 1x3x1x1"], (std::vector<float>{255, 510, 1020}));
}

// Each would be written as something else than the net has, or as something enormous.
TEST_F(ConvertWeights, RefusesMapsThatMixTensorsUp) {
  ASSERT_EQ(convert(weights()).code, 0);
  const struct {
    std::string c, f, message;  // what the pairs of two layers say behind `to`
  } rows[] = {
      {"", "", "m.names:2:1: tensor \"x.weight\" of f[0] is already that of c[0]"},
      {"tensor: ['w', 'w']", "", "m.names:1:1: tensor \"x.w\" of c[1] is already that of c[0]"},
      {"tensor: ['w:0:2', 'b']", "tensor: ['w:0:2', 'd']", "part 0 of it is already that of"},
      {"tensor: ['w:0:2', 'b']", "tensor: ['w:2:3', 'd']", "\"x.w\" of f[0] is already that of"},
      {"tensor: ['w:0:2', 'b']", "tensor: ['w', 'd']", "\"x.w\" of f[0] is already that of c[0]"},
      {"tensor: ['w:0:2', 'b']", "tensor: ['w:1:2', 'd']",
       "has shape 2x4, that of c[0] has 1x3x1x1"},
      {"tensor: ['w:0:2000000000', 'b']", "",
       "m.names:1:1: tensor \"w:0:2000000000\" names no part"},
      {"tensor: ['', 'b']", "", "m.names:1:1: tensor \"\" has no name"},
      {"tensor: [':0:2', 'b']", "", "m.names:1:1: tensor \":0:2\" has no name"},
      {"leading_ones: 4000000000", "",
       "m.names:1:27: leading_ones is 4000000000; expected at most 8"},
      {"trailing_ones: 9", "", "m.names:1:27: trailing_ones is 9; expected at most 8"},
      {"} eps: -1 pair { from: 'q' to: 'q'", "",
       "m.names:1:29: eps is -1; expected a positive number"},
  };
  for (const auto& row : rows) {
    folder_.write("m.names",
                  cat("pair { from: 'x' to: 'c'  ", row.c, " }\npair { from: 'x' to: 'f' ", row.f,
                      " }\npair { from: 'n' to: 'n' }\n"));
    const Outcome outcome = run(folder_,
                                "crema convert_weights -model net.prototxt -weights "
                                "w.caffemodel -output x.safetensors -names m.names");
    EXPECT_EQ(outcome.code, 1) << row.message;
    expect_part(outcome.err, row.message);
    EXPECT_FALSE(folder_.has("x.safetensors")) << row.message;
  }
}

TEST_F(ConvertWeights, RefusesWhatPyTorchCannotTake) {
  ASSERT_EQ(convert(weights()).code, 0);
  folder_.write("short.names", "pair { from: \"stem.0\" to: \"c\" }\n");
  const struct {
    std::string flags, message;
  } rows[] = {
      {"", "weights are needed: -from"},
      {"-from w.safetensors -weights w.caffemodel", "give one of them"},
      {"-weights w.caffemodel -output w.pth", "written as .safetensors"},
      {"-weights w.caffemodel -output x.safetensors -set eps=1e-3", "layer \"n\" has eps 0.001"},
      {"-weights w.caffemodel -output x.safetensors -names short.names", "has no pair for n[0]"},
  };
  for (const auto& row : rows) {
    const Outcome outcome = run(folder_, "crema convert_weights -model net.prototxt " + row.flags);
    EXPECT_EQ(outcome.code, 1) << row.message;
    expect_part(outcome.err, row.message);
    EXPECT_FALSE(folder_.has("x.safetensors")) << row.message;
  }
}

}  // namespace convert_weights_test
}  // namespace crema::tests
