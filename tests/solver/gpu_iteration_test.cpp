// Training on a GPU: iterations that are recorded and repeated give what kernels launched one by
// one give, with everything random in the net, several batches an iteration, every update rule and
// clipping; and float16's loss scale.
#include "solver/iteration/gpu_iteration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "solver/fixtures.h"
#include "solver/snapshot/state_file.h"

namespace crema::tests {
namespace gpu_iteration_test {

// With convolutions whose gradients kernels add up, and a layer that is updated before the others.
constexpr const char* kImages = R"(
  layer { name: "data" type: "DummyData" top: "x" top: "y"
    dummy_data_param { shape { dim: 6 dim: 3 dim: 12 dim: 12 } shape { dim: 6 dim: 4 }
                       data_filler { type: "gaussian" std: 1 } data_filler { type: "uniform" } } }
  layer { name: "conv1" type: "Convolution" bottom: "x" top: "a" param { lr_mult: 0.02 } param { lr_mult: 0.02 }
    convolution_param { num_output: 16 kernel_size: 3 weight_filler { type: "xavier" } } }
  layer { name: "relu1" type: "ReLU" bottom: "a" top: "a" }
  layer { name: "conv2" type: "Convolution" bottom: "a" top: "b" param { name: "w" lr_mult: 0.02 }
    param { name: "b" lr_mult: 0.02 }
    convolution_param { num_output: 16 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
  layer { name: "conv3" type: "Convolution" bottom: "b" top: "c" param { name: "w" lr_mult: 0.02 }
    param { name: "b" lr_mult: 0.02 }
    convolution_param { num_output: 16 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
  layer { name: "dw1" type: "ConvolutionDepthwise" bottom: "c" top: "c1" param { lr_mult: 0.02 } param { lr_mult: 0.02 }
    convolution_param { num_output: 16 kernel_size: 3 pad: 1 weight_filler { type: "uniform" min: 0 max: 0.2 } } }
  layer { name: "dw2" type: "ConvolutionDepthwise" bottom: "c1" top: "c2" param { name: "dw" lr_mult: 0.02 }
    param { name: "db" lr_mult: 0.02 }
    convolution_param { num_output: 16 kernel_size: 3 pad: 1 weight_filler { type: "uniform" min: 0 max: 0.2 } } }
  layer { name: "dw3" type: "ConvolutionDepthwise" bottom: "c2" top: "c3" param { name: "dw" lr_mult: 0.02 }
    param { name: "db" lr_mult: 0.02 }
    convolution_param { num_output: 16 kernel_size: 3 pad: 1 weight_filler { type: "uniform" min: 0 max: 0.2 } } }
  layer { name: "pool" type: "Pooling" bottom: "c3" top: "d" pooling_param { kernel_size: 2 stride: 2 } }
  layer { name: "ip1" type: "InnerProduct" bottom: "d" top: "e" param { lr_mult: 0.02 } param { lr_mult: 0.02 }
    inner_product_param { num_output: 2700 weight_filler { type: "xavier" } } }
  layer { name: "relu2" type: "ReLU" bottom: "e" top: "e" }
  layer { name: "ip2" type: "InnerProduct" bottom: "e" top: "z" param { lr_mult: 0.02 } param { lr_mult: 0.02 }
    inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "z" bottom: "y" top: "loss" }
)";

// In 16 bits: images that a view makes of rows, which are not channels-last; a loss_weight on a
// layer that is not a loss; a loss from which nothing learns.
constexpr const char* kViews = R"(
  layer { name: "data" type: "DummyData" top: "x" top: "y" top: "z"
    dummy_data_param { shape { dim: 6 dim: 30 } shape { dim: 6 dim: 4 } shape { dim: 6 dim: 4 }
                       data_filler { type: "gaussian" std: 1 } data_filler { type: "uniform" }
                       data_filler { type: "gaussian" std: 1 } } }
  layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "a"
    inner_product_param { num_output: 24 weight_filler { type: "xavier" } } }
  layer { name: "images" type: "Reshape" bottom: "a" top: "b" reshape_param { shape { dim: 0 dim: 6 dim: 2 dim: 2 } } }
  layer { name: "norm" type: "BatchNorm" bottom: "b" top: "c" }
  layer { name: "scale" type: "Scale" bottom: "c" top: "c" scale_param { bias_term: true } }
  layer { name: "relu" type: "ReLU" bottom: "c" top: "c" }
  layer { name: "lrn" type: "LRN" bottom: "b" top: "d" }
  layer { name: "sum" type: "Eltwise" bottom: "c" bottom: "d" top: "e" }
  layer { name: "small" type: "Power" bottom: "e" top: "f" power_param { scale: 0.01 } loss_weight: 0.1 }
  layer { name: "ip2" type: "InnerProduct" bottom: "e" top: "g" param { lr_mult: 0.02 } param { lr_mult: 0.02 }
    inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "g" bottom: "y" top: "loss" }
  layer { name: "far" type: "EuclideanLoss" bottom: "y" bottom: "z" top: "far" }
)";

struct Trained {
  std::vector<double> losses;
  std::vector<float> weights;
};

Trained train(const std::string& solver_text, bool capture, Precision precision,
              int64_t iterations = 12, const std::string& net = kNet, bool repeatable = true) {
  Context context(Device::gpu);
  context.repeatable = repeatable;
  if (!repeatable) context.tune(TuneMode::quick);
  Losses losses;
  SolverOptions options;
  options.net.capture = capture;
  options.net.precision = precision;
  options.readers = {&losses};
  Solver solver(context, solver_file(cat("display: 1 random_seed: 3 ", solver_text), net), options);
  solver.step(iterations);
  return {losses.values, parameters_of(solver)};
}

double tolerance_of(Precision precision) {
  return is_half(precision) ? 3e-2 : precision == Precision::tf32 ? 1e-2 : 2e-3;
}

class GpuIterations
    : public testing::TestWithParam<std::tuple<const char*, Precision, const char*>> {};

TEST_P(GpuIterations, RecordedOnesAreTheSame) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  const auto& [solver, precision, net] = GetParam();
  const Trained one_by_one = train(solver, false, precision, 12, net),
                recorded = train(solver, true, precision, 12, net);
  EXPECT_EQ(one_by_one.losses, recorded.losses);
  EXPECT_EQ(one_by_one.weights, recorded.weights);
}

// The first iterations of the same training on a CPU: random numbers and rates are the same there.
TEST_P(GpuIterations, FollowTheCpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  const auto& [text, precision, net] = GetParam();
  Context context(Device::cpu);
  Losses losses;
  SolverOptions options;
  options.readers = {&losses};
  Solver solver(context, solver_file(cat("display: 1 random_seed: 3 ", text), net), options);
  solver.step(4);
  const Trained gpu = train(text, true, precision, 4, net);
  ASSERT_EQ(losses.values.size(), gpu.losses.size());
  const double tolerance = tolerance_of(precision);
  for (size_t i = 0; i < gpu.losses.size(); ++i)
    EXPECT_NEAR(gpu.losses[i], losses.values[i], tolerance * losses.values[i]) << i;
}

INSTANTIATE_TEST_SUITE_P(
    All, GpuIterations,
    testing::Combine(
        testing::Values("momentum: 0.9", "snapshot_diff: true", "iter_size: 3 average_loss: 4",
                        "type: \"Adam\" momentum: 0.9 momentum2: 0.99",
                        "clip_gradients: 0.05 weight_decay: 0.01"),
        testing::Values(Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16),
        testing::Values(kNet, kImages)));
INSTANTIATE_TEST_SUITE_P(Views, GpuIterations,
                         testing::Combine(testing::Values("momentum: 0.9"),
                                          testing::Values(Precision::bf16, Precision::fp16),
                                          testing::Values(kViews)));

// Gradients that kernels add to existing values start at zero in each iteration, with weights that
// two layers share and with several batches per iteration.
TEST_P(GpuIterations, SumsInAnyOrderAreNearThoseInOne) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  const auto& [text, precision, net] = GetParam();
  const Trained any = train(text, true, precision, 12, net, false),
                ordered = train(text, true, precision, 12, net);
  ASSERT_EQ(any.losses.size(), ordered.losses.size());
  const double tolerance = tolerance_of(precision);
  for (size_t i = 0; i < any.losses.size(); ++i)
    EXPECT_NEAR(any.losses[i], ordered.losses[i], tolerance * ordered.losses[i]) << i;
}

// Between looks at the loss, iterations go several to a graph.
TEST(GpuIteration, SeveralInOneGraphAreTheSame) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  const auto weights = [](bool capture, int64_t at_once) {
    Context context(Device::gpu);
    SolverOptions options;
    options.net.capture = capture;
    options.net.precision = Precision::fp16;
    // The rate changes every third iteration, within a graph.
    Solver solver(context, solver_file("display: 0 random_seed: 3"), options);
    for (int64_t done = 0; done < 60; done += at_once) solver.step(at_once);
    return parameters_of(solver);
  };
  const std::vector<float> one_by_one = weights(false, 1);
  EXPECT_EQ(weights(true, 60), one_by_one);
  EXPECT_EQ(weights(true, 12), one_by_one);
  EXPECT_EQ(weights(true, 1), one_by_one);
}

// The sum of squares of each parameter's gradient in the first iteration.
class FirstGradients : public EventReader {
 public:
  void read(const Event& event) override {
    const auto* found = std::get_if<event::Histogram>(&event);
    if (found && found->iteration == 0 && starts_with(found->tag, "gradients/"))
      squares[found->tag] = found->sum_of_squares;
  }
  std::map<std::string, double> squares;
};

// Iterations with histograms are launched kernel by kernel, those between them as graphs. Gradients
// are shown without fp16's loss scale, as means over iter_size batches.
TEST(GpuIteration, HistogramsChangeNothing) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  for (const char* solver : {"momentum: 0.9", "iter_size: 3", "snapshot_diff: true"}) {
    std::map<std::string, double> exact;
    for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
      SCOPED_TRACE(cat(solver, " ", name_of(precision)));
      FirstGradients gradients;
      std::vector<float> weights[2];
      for (const bool asked : {false, true}) {
        Context context(Device::gpu);
        context.repeatable = true;
        SolverOptions options;
        options.net.precision = precision;
        options.histograms = asked ? 5 : 0;
        options.readers = {&gradients};
        Solver made(context, solver_file(cat("display: 0 random_seed: 3 ", solver), kImages),
                    options);
        made.step(37);
        weights[asked] = parameters_of(made);
      }
      EXPECT_EQ(weights[0], weights[1]);
      EXPECT_FALSE(gradients.squares.empty());
      if (exact.empty()) exact = gradients.squares;
      for (const auto& [tag, square] : gradients.squares)
        EXPECT_NEAR(square, exact.at(tag), 0.2 * exact.at(tag)) << tag;
    }
  }
}

TEST(GpuIteration, TheLossScaleFallsAtInfinities) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  Context context(Device::gpu);
  SolverOptions options;
  options.net.precision = Precision::fp16;
  // Gradients of this size are infinite times the first scale.
  const std::string net = R"(
    layer { name: "data" type: "DummyData" top: "x" top: "y" dummy_data_param {
      shape { dim: 4 dim: 8 } shape { dim: 4 dim: 3 } data_filler { type: "constant" value: 8 }
      data_filler { type: "constant" value: 40 } } }
    layer { name: "ip" type: "InnerProduct" bottom: "x" top: "z" inner_product_param { num_output: 3
      weight_filler { type: "constant" } } }
    layer { name: "loss" type: "EuclideanLoss" bottom: "z" bottom: "y" top: "loss" }
  )";
  Folder folder;
  const std::string text = cat("net_param {", net, "} base_lr: 1e-5 lr_policy: \"fixed\" ",
                               "snapshot_prefix: \"", folder.file("s"), "\"");
  Solver solver(context, parse_solver_text(text, "solver.prototxt"), options);
  solver.step(1);
  const std::vector<float> start = parameters_of(solver);
  for (float weight : start) EXPECT_EQ(weight, 0);  // the update was left out
  solver.step(20);
  for (float weight : parameters_of(solver)) EXPECT_TRUE(std::isfinite(weight));
  EXPECT_NE(parameters_of(solver), start);
  solver.snapshot();
  const SolverState state = read_solver_state(folder.file("s_iter_21.solverstate"));
  EXPECT_LT(state.loss_scale(), 0x1p15f);
  EXPECT_GT(state.loss_scale(), 1);
}

// A label that is no class is reported however late the loss is read: on a GPU at the end, with the
// pass that had it first.
TEST(GpuIteration, ABadLabelIsReportedLater) {
  // That of Accuracy comes before the loss, which therefore is not asked.
  const std::pair<const char*, const char*> layers[] = {{"loss", R"(type: "SoftmaxWithLoss")"},
                                                        {"loss", R"(type: "HingeLoss")"},
                                                        {"hits", R"(type: "Accuracy")"}};
  for (const auto& [name, type] : layers) {
    for (const Device device : {Device::cpu, Device::gpu}) {
      if (device == Device::gpu && gpu_count() == 0) continue;
      for (const bool resident : {true, false}) {
        const Folder folder;
        const std::string data =
            image_database(folder, 12, {1, 2, 2}, [](int64_t i) { return i == 7 ? 9 : i % 3; });
        const std::string net = cat(R"(
        layer { name: "data" type: "Data" top: "x" top: "label" data_param { batch_size: 2 backend: LMDB source: ")",
                                    data, R"(" } transform_param { scale: 0.01 } }
        layer { name: "ip" type: "InnerProduct" bottom: "x" top: "z" inner_product_param { num_output: 3 } }
        layer { name: ")",
                                    name, "\" ", type, R"( bottom: "z" bottom: "label" top: "y" }
        layer { name: "last" type: "SoftmaxWithLoss" bottom: "z" bottom: "label" top: "last" })");
        Context context(device);
        context.resident = resident;
        Solver solver(context, solver_file("", net));
        const std::string message = error_of([&] { solver.step(10); });
        expect_part(message, "label 9 of image 1 of the batch");
        expect_part(message, cat("layer \"", name, "\""));
        if (device == Device::cpu) continue;
        expect_part(message, "of forward pass 3");
        expect_part(error_of([&] { solver.net().check(); }), "layer \"last\"");
        EXPECT_NO_THROW(solver.net().check());  // each told once
      }
    }
  }
}

}  // namespace gpu_iteration_test
}  // namespace crema::tests
