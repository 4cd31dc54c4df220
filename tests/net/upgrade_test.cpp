// Upgrades against files that Caffe's own tools wrote, and what must not reach a binary file.
#include "net/prototxt/upgrade.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "net/prototxt/prototxt.h"
#include "net/prototxt/upgrade_layers.h"
#include "net/prototxt/upgrade_strip.h"
#include "support.h"

namespace crema {
namespace upgrade_test {

const std::string kFolder = CREMA_TEST_DATA "/goldens/legacy/";

template <typename Message>
::testing::AssertionResult same(const Message& a, const Message& b) {
  std::string difference;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&difference);
  if (differencer.Compare(a, b)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << difference;
}

// Lines that Caffe's tool logged about a file, without time stamps; our warnings have our own
// words.
std::vector<std::string> caffe_lines(const std::string& file) {
  std::ifstream log(kFolder + "upgrade_logs.txt");
  std::vector<std::string> lines;
  bool inside = false;
  for (std::string line; std::getline(log, line);) {
    if (starts_with(line, "###")) inside = line.find(" " + file + " ") != std::string::npos;
    const size_t text = line.find("] ");
    if (!inside || line[0] != 'I' || text == std::string::npos) continue;
    if (line.find("Wrote upgraded") == std::string::npos) lines.push_back(line.substr(text + 2));
  }
  return lines;
}

std::vector<std::string> info_lines(const std::vector<Note>& notes) {
  std::vector<std::string> lines;
  for (const Note& note : notes) {
    if (note.severity == Severity::info) lines.push_back(note.line);
  }
  return lines;
}

class NetGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(NetGolden, BecomesWhatCaffeMakesOfIt) {
  const std::string name = GetParam();
  const NetFile ours = parse_net_text(read_file(kFolder + name + ".prototxt"), name + ".prototxt");
  const NetFile caffes = read_net_file(kFolder + name + ".upgraded.prototxt");
  EXPECT_TRUE(same(ours.net, caffes.net));
  EXPECT_EQ(info_lines(ours.upgrade.notes), caffe_lines(name + ".prototxt"));
  EXPECT_EQ(ours.upgrade.changed, !info_lines(ours.upgrade.notes).empty());
  ASSERT_EQ(static_cast<int>(ours.upgrade.origins.size()), ours.net.layer_size());
  for (int i = 0; i < ours.net.layer_size(); ++i) {
    EXPECT_NE(ours.where(i), name + ".prototxt") << "layer " << i << " has no position";
  }
}

INSTANTIATE_TEST_SUITE_P(Legacy, NetGolden,
                         ::testing::Values("current", "input_dims", "input_shape", "old_batchnorm",
                                           "v0_images", "v0_input", "v0_net", "v1_data_transform",
                                           "v1_deploy", "v1_net", "v2_data_transform"),
                         [](const auto& info) { return std::string(info.param); });

class WeightsGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(WeightsGolden, BecomeWhatCaffeMakesOfThem) {
  const std::string name = GetParam();
  const std::string expected = read_file(kFolder + name + ".upgraded.caffemodel");
  NetParameter ours, caffes;
  ASSERT_TRUE(ours.ParseFromString(read_file(kFolder + name + ".caffemodel")));
  ASSERT_TRUE(caffes.ParseFromString(expected));
  const Upgrade upgrade = upgrade_net(&ours, name + ".caffemodel");
  EXPECT_TRUE(same(ours, caffes));
  EXPECT_EQ(info_lines(upgrade.notes), caffe_lines(name + ".caffemodel"));
  strip_fork_fields(&ours);
  EXPECT_EQ(ours.SerializeAsString(), expected);
}

INSTANTIATE_TEST_SUITE_P(Legacy, WeightsGolden, ::testing::Values("v0", "v1"),
                         [](const auto& info) { return std::string(info.param); });

class SolverGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(SolverGolden, BecomesWhatCaffeMakesOfIt) {
  const std::string name = GetParam();
  SolverFile ours = parse_solver_text(read_file(kFolder + name + ".prototxt"), name + ".prototxt");
  SolverFile caffes = read_solver_file(kFolder + name + ".upgraded.prototxt");
  // The reader also completes the prefix, as a run does; the tool does not.
  if (ours.solver.snapshot_prefix() == name) {
    ours.solver.clear_snapshot_prefix();
    caffes.solver.clear_snapshot_prefix();
    ours.notes.pop_back();
  }
  EXPECT_TRUE(same(ours.solver, caffes.solver));
  EXPECT_EQ(info_lines(ours.notes), caffe_lines(name + ".prototxt"));
}

INSTANTIATE_TEST_SUITE_P(Legacy, SolverGolden,
                         ::testing::Values("solver_current", "solver_type_adadelta",
                                           "solver_type_adagrad", "solver_type_adam",
                                           "solver_type_nesterov", "solver_type_rmsprop",
                                           "solver_type_sgd"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Upgrade, NamesFieldsThatAV0TypeNeverHad) {
  const NetFile file = parse_net_text(
      "layers { layer { name: \"r\" type: \"relu\" num_output: 3 det_crop_mode: \"warp\" } }", "f");
  EXPECT_EQ(file.net.layer(0).type(), "ReLU");
  ASSERT_GT(file.upgrade.notes.size(), 3u);
  EXPECT_EQ(file.upgrade.notes[1].line, "Unknown parameter num_output for layer type relu");
  EXPECT_EQ(file.upgrade.notes[2].line, "Unknown parameter det_crop_mode for layer type relu");
  EXPECT_EQ(file.upgrade.notes[2].severity, Severity::error);
}

TEST(Upgrade, WarnsOfTransformFieldsInTheWrongPlace) {
  const NetFile file =
      parse_net_text("layer { name: \"d\" type: \"Data\"\n data_param { mirror: true } }", "f");
  EXPECT_FALSE(file.upgrade.changed);
  ASSERT_EQ(file.upgrade.notes.size(), 1u);
  EXPECT_EQ(file.upgrade.notes[0].line,
            "f:2:15: layer \"d\": data_param.mirror has no effect; write it inside "
            "transform_param { }");
}

TEST(Upgrade, RefusesPaddingThatNothingCanTakeIn) {
  EXPECT_THROW(
      parse_net_text("input: \"x\" input_dim: [1, 1, 1, 1]"
                     "layers { layer { type: \"padding\" pad: 1 } bottom: \"x\" top: \"p\" }"
                     "layers { layer { type: \"relu\" } bottom: \"p\" top: \"r\" }",
                     "f"),
      Error);
}

TEST(Upgrade, KeepsTypesAndParametersOfForks) {
  const NetFile file = parse_net_text(
      "layers { name: \"b\" type: BN bn_param { frozen: true } }"
      "layers { name: \"c\" type: CONVOLUTION3D }"
      "layers { name: \"v\" type: VIDEO_WITH_VOXEL_TRUTH_DATA }",
      "f");
  EXPECT_EQ(file.net.layer(0).type(), "BN");
  EXPECT_TRUE(file.net.layer(0).bn_param().frozen());
  EXPECT_EQ(file.net.layer(1).type(), "Convolution");
  EXPECT_EQ(file.net.layer(2).type(), "VideoWithVoxelTruthData");
}

TEST(Upgrade, GivesTypesOverTimeOfAForkTodaysNames) {
  const NetFile file = parse_net_text(
      "layers { name: \"c\" type: CONVOLUTION3D convolution_param { kernel_depth: 3 } }"
      "layers { name: \"p\" type: POOLING3D pooling_param { temporal_stride: 2 } }"
      "layers { name: \"d\" type: DECONVOLUTION3D }"
      "layers { name: \"k\" type: CROP }"
      "layers { name: \"u\" type: UNPOOLING unpooling_param { kernel_size: 2 } }"
      "layers { name: \"a\" type: ELTWISE_ACCURACY }",
      "f");
  const std::vector<std::string> today = {"Convolution", "Pooling",   "Deconvolution",
                                          "Crop",        "Unpooling", "EltwiseAccuracy"};
  ASSERT_EQ(file.net.layer_size(), static_cast<int>(today.size()));
  for (size_t i = 0; i < today.size(); ++i) EXPECT_EQ(file.net.layer(i).type(), today[i]);
  EXPECT_EQ(file.net.layer(0).convolution_param().kernel_depth(), 3);
  EXPECT_EQ(file.net.layer(1).pooling_param().temporal_stride(), 2);
}

TEST(Upgrade, MakesACascadedPoolingOfAForkAConvolution) {
  const NetFile file = parse_net_text(
      "input: \"x\" input_dim: [1, 4, 5, 5] "
      "layers { layer { name: \"c\" type: \"cccp\" num_output: 6 group: 2 } bottom: \"x\" top: "
      "\"c\" }"
      "layers { layer { name: \"i\" type: \"inner_product\" num_output: 3 } bottom: \"c\" top: "
      "\"i\" }",
      "f");
  const LayerParameter& cascaded = file.net.layer(file.net.layer_size() - 2);
  EXPECT_EQ(cascaded.type(), "Convolution");
  EXPECT_EQ(cascaded.convolution_param().kernel_size(0), 1);
  EXPECT_EQ(cascaded.convolution_param().num_output(), 12);
  EXPECT_EQ(cascaded.convolution_param().group(), 2);
  EXPECT_EQ(file.net.layer(file.net.layer_size() - 1).type(), "InnerProduct");
}

TEST(Upgrade, MakesASquaredHingeLossOfAForkAHingeLoss) {
  const NetFile file = parse_net_text(
      "input: \"x\" input_dim: [1, 2, 1, 1] input: \"y\" input_dim: [1, 1, 1, 1] "
      "layers { layer { name: \"l\" type: \"squaredhingeloss\" } bottom: \"x\" bottom: \"y\" }",
      "f");
  const LayerParameter& loss = file.net.layer(file.net.layer_size() - 1);
  EXPECT_EQ(loss.type(), "HingeLoss");
  EXPECT_EQ(loss.hinge_loss_param().norm(), HingeLossParameter::L2);
}

// Each V1 parameter block must have a place in today's layers.
TEST(Upgrade, UnfoldsAConvolutionWithTheLayersBehindIt) {
  const char* const convolution = "name: \"c\" type: \"Convolution\" ";
  const NetFile file = parse_net_text(
      cat("layer { ", convolution,
          "bottom: \"x\" bottom: \"z\" top: \"y\" include { phase: TEST } "
          "convolution_param { num_output: 2 fuse_type: FUSED_CONV_ELTWISE_RELU relu_param { "
          "negative_slope: 0.5 } } }\nlayer { ",
          convolution,
          "bottom: \"y\" top: \"w\" convolution_param { num_output: 2 fuse_type: FUSED_CONV_RELU } "
          "}"),
      "f");
  const NetFile expected = parse_net_text(
      cat("layer { ", convolution,
          "bottom: \"x\" top: \"c/convolution\" include { phase: TEST } "
          "convolution_param { num_output: 2 } }\n"
          "layer { name: \"c/sum\" type: \"Eltwise\" bottom: \"c/convolution\" bottom: \"z\" top: "
          "\"y\" include { phase: TEST } }\n"
          "layer { name: \"c/relu\" type: \"ReLU\" bottom: \"y\" top: \"y\" include { phase: TEST "
          "} "
          "relu_param { negative_slope: 0.5 } }\n"
          "layer { ",
          convolution,
          "bottom: \"y\" top: \"w\" convolution_param { num_output: 2 } }\n"
          "layer { name: \"c/relu\" type: \"ReLU\" bottom: \"w\" top: \"w\" relu_param { } }"),
      "f");
  EXPECT_TRUE(same(file.net, expected.net)) << file.net.DebugString();
  EXPECT_EQ(file.where(2), "f:1:1");
  EXPECT_EQ(file.where(4), "f:2:1");
  const std::string refused =
      "layer { type: \"Convolution\" bottom: \"x\" top: \"y\"\n convolution_param { fuse_type: "
      "FUSED_CONV_PRELU } }";
  tests::expect_part(tests::error_of([&] { parse_net_text(refused, "f"); }),
                     "f:2:22: fuse_type FUSED_CONV_PRELU is not supported");
}

TEST(Upgrade, UnfoldsTheReluOfIntelsLayers) {
  const NetFile file = parse_net_text(
      "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' convolution_param { num_output: "
      "2 "
      "relu: true negative_slope: 0.5 } }\n"
      "layer { name: 'b' type: 'BatchNorm' bottom: 'c' top: 'b' batch_norm_param { relu: true } }\n"
      "layer { name: 'd' type: 'Convolution' bottom: 'b' top: 'd' convolution_param { num_output: "
      "2 "
      "relu: false } }",
      "f");
  const NetFile expected = parse_net_text(
      "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' convolution_param { num_output: "
      "2 "
      "} } layer { name: 'c/relu' type: 'ReLU' bottom: 'c' top: 'c' relu_param { negative_slope: "
      "0.5 "
      "} } "
      "layer { name: 'b' type: 'BatchNorm' bottom: 'c' top: 'b' batch_norm_param { } } "
      "layer { name: 'b/relu' type: 'ReLU' bottom: 'b' top: 'b' relu_param { } } "
      "layer { name: 'd' type: 'Convolution' bottom: 'b' top: 'd' convolution_param { num_output: "
      "2 "
      "} }",
      "f");
  EXPECT_TRUE(same(file.net, expected.net)) << file.net.DebugString();
  EXPECT_EQ(file.where(3), "f:2:1");
}

// Lines of a net with one BatchNorm that has these param blocks: "lr/decay ..." of the result.
struct ParamRow {
  const char *given, *wanted;
  int notes;  // warnings
};
constexpr ParamRow kParamRows[] = {
    {"param { lr_mult: 1 decay_mult: 0 }", "0/0", 1},
    {"param { lr_mult: 0 }", "0/0", 0},
    // Caffe's own silent rule.
    {"param { lr_mult: 1 } param { lr_mult: 1 } param { lr_mult: 2 }", "0/0 0/0 0/0", 0},
    // NVCaffe's older order: scale, bias, mean, variance.
    {"param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 } param { lr_mult: 0 } param { "
     "lr_mult: 0 decay_mult: 0 }",
     "0/0 0/0 0/0 1/1", 2},
    {"param { lr_mult: 0 } param { lr_mult: 0 } param { lr_mult: 0 } param { lr_mult: 0.5 } param "
     "{ decay_mult: 0 }",
     "0/0 0/0 0/0 0.5/1 1/0", 0},
};

TEST(Upgrade, StatisticsOfABatchNormDoNotLearn) {
  for (const ParamRow& row : kParamRows) {
    const NetFile file =
        parse_net_text(cat("layer { name: 'b' type: 'BatchNorm' bottom: 'x' top: 'b'\n", row.given,
                           " batch_norm_param { scale_filler { value: 1 } } }"),
                       "f");
    std::vector<std::string> params;
    for (const ParamSpec& param : file.net.layer(0).param())
      params.push_back(cat(param.lr_mult(), "/", param.decay_mult()));
    EXPECT_EQ(join(params, " "), row.wanted);
    const auto warnings =
        std::count_if(file.upgrade.notes.begin(), file.upgrade.notes.end(),
                      [](const Note& note) { return note.severity == Severity::warning; });
    EXPECT_EQ(warnings, row.notes) << row.given;
    if (row.notes > 0)
      tests::expect_part(file.upgrade.notes[0].line,
                         "f:2:1: layer \"b\": lr_mult has no effect on BatchNorm's statistics");
  }
}

TEST(Upgrade, HasAPlaceForEveryV1Parameter) {
  const auto* v1 = V1LayerParameter::descriptor();
  for (int i = 0; i < v1->field_count(); ++i) {
    if (!ends_with(v1->field(i)->name(), "_param")) continue;
    const auto* today = LayerParameter::descriptor()->FindFieldByName(v1->field(i)->name());
    ASSERT_TRUE(today) << v1->field(i)->name();
    EXPECT_EQ(today->message_type(), v1->field(i)->message_type()) << today->name();
  }
}

// The comments in legacy.proto name today's types; they must be right.
TEST(Upgrade, NamesTypesAsTheSchemaSays) {
  const std::string text = read_file(CREMA_TEST_DATA "/../proto/legacy.proto");
  const auto* types = V1LayerParameter::LayerType_descriptor();
  for (int i = 0; i < types->value_count(); ++i) {
    const auto number = static_cast<V1LayerParameter::LayerType>(types->value(i)->number());
    if (number == V1LayerParameter::NONE) continue;
    const std::string line =
        cat("    ", types->value(i)->name(), " = ", number, ";  // ", layer_type(number), "\n");
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

TEST(Upgrade, GivesASolverAPrefix) {
  EXPECT_EQ(parse_solver_text("", "models/lenet/solver.prototxt").solver.snapshot_prefix(),
            "models/lenet/solver");
  EXPECT_EQ(parse_solver_text("", "a.b/solver").solver.snapshot_prefix(), "a.b/solver");
  EXPECT_EQ(parse_solver_text("snapshot_prefix: \"x/y\"", "s.prototxt").solver.snapshot_prefix(),
            "x/y");
  const std::string folder = ::testing::TempDir();
  const SolverFile file =
      parse_solver_text(cat("snapshot_prefix: \"", folder, "\""), "models/my_solver.prototxt");
  EXPECT_EQ(file.solver.snapshot_prefix(), (std::filesystem::path(folder) / "my_solver").string());
  EXPECT_EQ(file.notes.back().line,
            "snapshot_prefix was a directory and is replaced to " + file.solver.snapshot_prefix());
}

TEST(Strip, RemovesWhatOnlyForksKnow) {
  NetParameter net =
      parse_net_text(
          "default_forward_type: FLOAT16\n"
          "layer { name: \"a\" pooling_param { kernel_size: 2 ceil_mode: false engine: MKLDNN } }\n"
          "layer { name: \"b\" prior_box_param { clip: true } include { phase: RUN stage: \"s\" } "
          "}\n"
          "layer { name: \"c\" loss_param { normalization: PRE_FIXED ignore_label: 3 } }",
          "f")
          .net;
  strip_fork_fields(&net);
  const NetParameter expected = parse_net_text(
                                    "layer { name: \"a\" pooling_param { kernel_size: 2 } }\n"
                                    "layer { name: \"b\" include { stage: \"s\" } }\n"
                                    "layer { name: \"c\" loss_param { ignore_label: 3 } }",
                                    "f")
                                    .net;
  EXPECT_TRUE(same(net, expected));
}

TEST(Strip, KeepsOurOwnFields) {
  SolverState state;
  state.set_seed(5);
  state.set_minimum_loss(1);
  strip_fork_fields(&state);
  EXPECT_TRUE(state.has_seed());
  EXPECT_FALSE(state.has_minimum_loss());
}

}  // namespace upgrade_test
}  // namespace crema
