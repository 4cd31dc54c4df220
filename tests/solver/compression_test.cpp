// Fields of the solver that make nets smaller: quantize, prune and teacher.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "fixtures.h"
#include "net/weights/net_weights.h"
#include "net/weights/weights.h"
#include "solver/check/check.h"

namespace crema::tests {
namespace compression_test {

// Convolutions whose channels are summed, one that only the next one reads, and a depthwise one.
const char* const kImages = R"(
  name: "residual"
  layer { name: "data" type: "DummyData" top: "x" top: "label"
    dummy_data_param { shape { dim: 6 dim: 3 dim: 8 dim: 8 } shape { dim: 6 } data_filler { type: "gaussian" std: 1 }
                       data_filler { type: "constant" value: 1 } } }
  layer { name: "conv1" type: "Convolution" bottom: "x" top: "conv1"
    convolution_param { num_output: 8 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
  layer { name: "inner" type: "Convolution" bottom: "conv1" top: "inner"
    convolution_param { num_output: 16 kernel_size: 1 bias_term: false weight_filler { type: "xavier" } } }
  layer { name: "bn" type: "BatchNorm" bottom: "inner" top: "inner" }
  layer { name: "scale" type: "Scale" bottom: "inner" top: "inner" scale_param { bias_term: true } }
  layer { name: "relu" type: "ReLU" bottom: "inner" top: "inner" }
  layer { name: "dw" type: "ConvolutionDepthwise" bottom: "inner" top: "dw"
    convolution_param { num_output: 16 kernel_size: 3 pad: 1 group: 16 weight_filler { type: "xavier" } } }
  layer { name: "conv2" type: "Convolution" bottom: "dw" top: "conv2"
    convolution_param { num_output: 8 kernel_size: 1 weight_filler { type: "xavier" } } }
  layer { name: "sum" type: "Eltwise" bottom: "conv1" bottom: "conv2" top: "sum" }
  layer { name: "pool" type: "Pooling" bottom: "sum" top: "pool" pooling_param { kernel_size: 2 stride: 2 } }
  layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip"
    inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

SolverFile images(const std::string& more) {
  return parse_solver_text(cat("net_param {", kImages,
                               "}\nbase_lr: 0.01 lr_policy: \"fixed\" momentum: 0.9 "
                               "weight_decay: 0.001 random_seed: 7 max_iter: 20\n",
                               more),
                           "solver.prototxt");
}

TEST(Compression, RefusesWrongFields) {
  const std::pair<const char*, const char*> rows[] = {
      {"quantize { bits: 9 }", "solver.prototxt:24:12: bits is 9; expected 2 to 8"},
      {"quantize { start: -1 }", "start is -1; expected an iteration, 0 or more"},
      {"quantize { decay: 2 }", "decay is 2; expected 0 to 1"},
      {"quantize { keep: \"conf1\" }",
       "quantize.keep \"conf1\" is not the name of a layer that could be quantized (did you mean "
       "\"conv1\"?)"},
      {"quantize { layer: \"(\" }", "quantize.layer \"(\" is not a regular expression"},
      {"prune { sparsity: 1 }", "sparsity is 1; expected a share above 0 and below 1"},
      {"prune { interval: 0 }", "interval is 0; expected a number of iterations"},
      {"prune { start: 9 end: 3 }", "end is 3; expected an iteration that is not before the start"},
      {"prune { layer: \"ip\" }",
       "prune.layer \"ip\" is not the name of a layer whose channels could be removed"},
      {"prune { keep: \".*\" }", "no layer is left whose channels could be removed"},
      {"teacher { weights: \"w\" }", "teacher has no net: name its file"},
      {"teacher { net: \"none.prototxt\" weights: \"w\" }", "net \"none.prototxt\" does not exist"},
  };
  for (const auto& [text, message] : rows) {
    Context context(Device::cpu);
    expect_part(error_or_none([&, text = text] { Solver(context, images(text), {}); }), message);
  }
}

// `crema check` says so without making a net.
TEST(Compression, ChecksFields) {
  for (const auto& [text, message] : std::vector<std::pair<const char*, const char*>>{
           {"quantize { bits: 9 }", "bits is 9; expected 2 to 8"},
           {"prune { interval: 0 }", "interval is 0; expected a number of iterations"},
           {"teacher { net: \"none.prototxt\" weights: \"w\" }", "does not exist"}}) {
    std::string found;
    for (const Finding& finding : check_training(images(text), {})) found += finding.text + "\n";
    expect_part(found, message);
  }
}

// The net's layers that are not in the file.
std::vector<std::string> added(const Net& net) {
  std::vector<std::string> names;
  for (const LayerParameter& layer : net.graph().net.layer())
    if (layer.type() == "FakeQuantize") names.push_back(layer.name());
  return names;
}

TEST(Quantize, RoundsFromItsStart) {
  Context context(Device::cpu);
  Solver plain(context, images(""), {}), rounds(context, images("quantize { start: 3 }"), {});
  plain.step(3);
  rounds.step(3);
  EXPECT_EQ(added(rounds.net()), (std::vector<std::string>{"x/range", "conv1/range", "inner/range",
                                                           "dw/range", "pool/range"}));
  EXPECT_EQ(plain.loss(), rounds.loss());
  plain.step(1);
  rounds.step(1);
  EXPECT_NE(plain.loss(), rounds.loss());
  EXPECT_NEAR(plain.loss(), rounds.loss(), 0.05 * plain.loss());
}

// 8 bits change gradients little, whatever the order of a layer's weights in memory.
TEST(Quantize, LearnsInTheSameDirection) {
  for (const Device device : {Device::cpu, Device::gpu}) {
    if (device == Device::gpu && gpu_count() == 0) continue;
    Context context(device);
    Solver plain(context, images(""), {}), rounds(context, images("quantize { }"), {});
    const NetWeights before = weights_of(plain.net());
    plain.step(1);
    rounds.step(1);
    const NetWeights after = weights_of(plain.net()), rounded = weights_of(rounds.net());
    for (const char* layer : {"conv1", "inner", "dw", "conv2", "ip"}) {
      const std::vector<float>&from = before.at(layer)[0].values, &to = after.at(layer)[0].values,
            &found = rounded.at(layer)[0].values;
      double change = 0, difference = 0;
      for (size_t i = 0; i < from.size(); ++i) {
        change += std::pow(to[i] - from[i], 2);
        difference += std::pow(found[i] - to[i], 2);
      }
      EXPECT_LT(std::sqrt(difference), 0.2 * std::sqrt(change)) << layer;
    }
  }
}

TEST(Quantize, TakesTheLayersThatAreNamed) {
  Context context(Device::cpu);
  Solver solver(context, images("quantize { layer: \"conv.*\" layer: \"ip\" keep: \"conv1\" }"),
                {});
  EXPECT_EQ(added(solver.net()), (std::vector<std::string>{"dw/range", "pool/range"}));
}

// The range follows the batches, and that of values after a ReLU has no sign.
TEST(Quantize, MeasuresRanges) {
  Context context(Device::cpu);
  Solver solver(context, images("quantize { decay: 0.5 }"), {});
  solver.step(4);
  const NetWeights weights = weights_of(solver.net());
  EXPECT_LT(weights.at("x/range")[0].values[0], -2);
  EXPECT_GT(weights.at("x/range")[0].values[1], 2);
  EXPECT_EQ(weights.at("inner/range")[0].values[0], 0);
  EXPECT_GT(weights.at("inner/range")[0].values[1], 0);
  EXPECT_EQ(weights.at("inner/range")[1].values, std::vector<float>{1});
}

TEST(Quantize, LearnsFactorsOfRanges) {
  Context context(Device::cpu);
  Solver solver(context, images("quantize { range: LEARNED bits: 3 }"), {});
  solver.step(5);
  EXPECT_NE(weights_of(solver.net()).at("dw/range")[1].values, std::vector<float>{1});
}

double zeros(const std::vector<float>& values) {
  return static_cast<double>(std::count(values.begin(), values.end(), 0.0f)) /
         static_cast<double>(values.size());
}

TEST(Prune, RemovesWeights) {
  for (const Device device : {Device::cpu, Device::gpu}) {
    if (device == Device::gpu && gpu_count() == 0) continue;
    Context context(device);
    Solver solver(context,
                  images("prune { kind: WEIGHTS sparsity: 0.75 end: 8 interval: 4 keep: \"ip\" }"),
                  {});
    solver.step(5);
    // At iteration 4, half way: 0.75 * (1 - 0.5 ^ 3).
    EXPECT_NEAR(zeros(weights_of(solver.net()).at("conv1")[0].values), 0.656, 0.01);
    solver.step(10);
    const NetWeights weights = weights_of(solver.net());
    EXPECT_EQ(zeros(weights.at("conv1")[0].values), 0.75);
    EXPECT_EQ(zeros(weights.at("dw")[0].values), 0.75);
    EXPECT_EQ(zeros(weights.at("conv1")[1].values), 0) << "a bias";
    EXPECT_EQ(zeros(weights.at("ip")[0].values), 0);
  }
}

TEST(Prune, RemovesTwoOfFour) {
  Context context(Device::cpu);
  Solver solver(context, images("prune { kind: TWO_OF_FOUR layer: \"inner\" layer: \"conv1\" }"),
                {});
  solver.step(3);
  const NetWeights weights = weights_of(solver.net());
  const std::vector<float>& inner = weights.at("inner")[0].values;
  for (size_t i = 0; i < inner.size(); i += 4)
    EXPECT_EQ(std::count(inner.begin() + i, inner.begin() + i + 4, 0.0f), 2) << i;
  EXPECT_EQ(zeros(weights.at("conv1")[0].values), 0) << "three channels have no fourth";
}

// The channels of conv1 and conv2 are summed, those of inner and dw are the same.
// The mask takes a byte for each parameter.
TEST(Prune, TakesLittleMemory) {
  size_t bytes[2] = {};
  size_t parameters = 0;
  for (const bool prunes : {false, true}) {
    Context context(Device::cpu);
    Solver solver(context, images(prunes ? "prune { sparsity: 0.5 }" : ""), {});
    bytes[prunes] = solver.memory().history;
    parameters = solver.memory().parameters;
  }
  EXPECT_EQ(bytes[1] - bytes[0], parameters / sizeof(float));
}

TEST(Prune, RemovesChannels) {
  for (const char* type : {"SGD", "Adam"}) {
    Context context(Device::cpu);
    Solver solver(context, images(cat("type: \"", type, "\" prune { end: 6 interval: 2 }")), {});
    solver.step(9);
    const NetWeights weights = weights_of(solver.net());
    const auto gone = [&](const std::string& layer, size_t blob) {
      const WeightBlob& one = weights.at(layer)[blob];
      std::vector<int64_t> rows;
      const int64_t size = one.shape.count(1);
      for (int64_t row = 0; row < one.shape[0]; ++row) {
        const auto first = one.values.begin() + row * size;
        if (std::all_of(first, first + size, [](float w) { return w == 0; })) rows.push_back(row);
      }
      return rows;
    };
    EXPECT_EQ(gone("conv1", 0).size(), 4u);
    EXPECT_EQ(gone("conv1", 0), gone("conv2", 0));
    EXPECT_EQ(gone("conv1", 0), gone("conv1", 1));
    EXPECT_EQ(gone("inner", 0).size(), 8u);
    for (const auto& [layer, blob] : std::vector<std::pair<std::string, size_t>>{
             {"dw", 0}, {"dw", 1}, {"bn", 0}, {"bn", 1}, {"scale", 0}, {"scale", 1}})
      EXPECT_EQ(gone("inner", 0), gone(layer, blob)) << layer << " " << blob;
    EXPECT_EQ(zeros(weights.at("ip")[1].values), 0);
  }
}

struct TeacherFiles {
  Folder folder;
  std::string net = folder.file("teacher.prototxt"), weights = folder.file("teacher.caffemodel");
  TeacherFiles() {
    std::ofstream(net) << kImages;
    Context context(Device::cpu);
    Solver solver(context, images("type: \"Nesterov\""), {});
    solver.step(5);
    save_caffemodel(solver.net(), weights);
  }
  std::string field(const std::string& more) const {
    return cat("teacher { net: \"", net, "\" weights: \"", weights, "\" ", more, " }");
  }
};

// With nothing but the teacher to learn from, the scores of a net of the same form come close to its scores.
TEST(Teacher, IsImitated) {
  const TeacherFiles teacher;
  Context context(Device::cpu);
  Solver solver(
      context,
      images(teacher.field("weight: 1 temperature: 2 match { student: \"ip\" teacher: \"ip\" }") +
             "type: \"Adam\""),
      {});
  solver.step(1);
  const double before = solver.loss();
  solver.step(150);
  // What is left is the entropy of the teacher's answers.
  EXPECT_LT(solver.loss(), before - 0.1);
  const NetWeights weights = weights_of(solver.net());
  Context other(Device::cpu);
  NetOptions options;
  options.state.set_phase(TRAIN);
  Net net(other, read_net_file(teacher.net).net, options);
  load_weights(net, teacher.weights, {WeightsMode::strict, false});
  EXPECT_EQ(weights.at("teacher/conv1")[0].values, weights_of(net).at("conv1")[0].values)
      << "the teacher does not change";
}

TEST(Teacher, IsNotInSnapshots) {
  const TeacherFiles teacher;
  for (const char* format : {"BINARYPROTO", "HDF5"}) {
    const Folder folder;
    const SolverFile file =
        images(cat(teacher.field(""), " snapshot_prefix: \"", folder.file("net"),
                   "\" snapshot: 4 snapshot_format: ", format));
    std::vector<float> whole;
    {
      Context context(Device::cpu);
      Solver solver(context, file, {});
      solver.step(8);
      whole = parameters_of(solver);
    }
    const std::string end = std::string(format) == "HDF5" ? ".h5" : "";
    Context context(Device::cpu);
    NetOptions options;
    options.state.set_phase(TEST);
    Net net(context, parse_net_text(kImages, "net").net, options);
    const LoadReport report =
        load_weights(net, folder.file("net_iter_4.caffemodel" + end), {WeightsMode::strict, false});
    for (const std::string& layer : report.ignored) expect_part(layer, "_split");
    SolverOptions resumed;
    resumed.snapshot = folder.file("net_iter_4.solverstate" + end);
    Solver solver(context, file, resumed);
    solver.step(4);
    EXPECT_EQ(parameters_of(solver), whole) << format;
  }
}

TEST(Teacher, RefusesBlobsThatAreNotThere) {
  const TeacherFiles teacher;
  const std::pair<const char*, const char*> rows[] = {
      {"scores: \"ipp\"", "the teacher has no blob \"ipp\" (did you mean \"ip\"?)"},
      {"student_scores: \"none\"", "the trained net has no blob \"none\""},
      {"match { student: \"conv1\" teacher: \"konv1\" }", "the teacher has no blob \"konv1\""},
      {"weight: 0", "nothing is learned from the teacher: weight is 0, and there is no match"},
      {"temperature: 0", "temperature is 0; expected a positive number"},
  };
  for (const auto& [text, message] : rows) {
    Context context(Device::cpu);
    expect_part(
        error_or_none([&, text = text] { Solver(context, images(teacher.field(text)), {}); }),
        message);
  }
}

TEST(Teacher, RefusesOtherWeights) {
  TeacherFiles teacher;
  std::string text = kImages;
  text.replace(text.find("num_output: 8"), 13, "num_output: 9");
  text.replace(text.find("num_output: 8"), 13, "num_output: 9");
  std::ofstream(teacher.net) << text;
  Context context(Device::cpu);
  const std::string message =
      error_or_none([&] { Solver(context, images(teacher.field("")), {}); });
  expect_part(message, "does not fit layer \"conv1\" of the teacher");
  expect_part(message, "8x3x3x3");
}

TEST(Teacher, RefusesOtherData) {
  const TeacherFiles teacher;
  Context context(Device::cpu);
  std::string net = kImages;
  net.replace(net.find("dim: 6 dim: 3 dim: 8"), 20, "dim: 6 dim: 2 dim: 8");
  const SolverFile file = parse_solver_text(
      cat("net_param {", net, "}\nbase_lr: 0.01 lr_policy: \"fixed\"\n", teacher.field("")),
      "solver.prototxt");
  expect_part(error_or_none([&] { Solver(context, file, {}); }),
              "has weights of 8x3x3x3, but reads data for which they would be 8x2x3x3");
}

// All three at once.
TEST(Compression, PartsGoTogether) {
  const TeacherFiles teacher;
  Context context(Device::cpu);
  Solver solver(context,
                images(teacher.field("") + "quantize { start: 4 } prune { end: 4 interval: 2 }"),
                {});
  solver.step(8);
  const NetWeights weights = weights_of(solver.net());
  EXPECT_EQ(zeros(weights.at("inner")[0].values), 0.75) << "half of the rows, and of the columns";
  EXPECT_EQ(zeros(weights.at("teacher/inner")[0].values), 0);
  EXPECT_TRUE(std::isfinite(solver.loss()));
}

}  // namespace compression_test
}  // namespace crema::tests
