// Losses and weights that are not finite: where the run ends, its message, and that no snapshot of
// them is written.
#include <gtest/gtest.h>

#include <limits>
#include <regex>

#include "fixtures.h"
#include "net/weights/weights.h"
#include "solver/divergence/not_finite.h"

namespace crema::tests {
namespace divergence_test {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

SolverFile with_rate(const std::string& rate, const Folder& folder, const std::string& more,
                     const std::string& net = kNet) {
  return parse_solver_text(
      cat("net_param {", net, "}\nlr_policy: \"fixed\" random_seed: 1 max_iter: 8 base_lr: ", rate,
          " snapshot_prefix: \"", folder.file("net"), "\" ", more),
      "solver.prototxt");
}

std::string divergence_of(Solver& solver) {
  try {
    solver.solve();
  } catch (const Diverged& error) {
    return error.what();
  }
  ADD_FAILURE() << "the run went to its end";
  return "";
}

std::vector<Device> devices() {
  return gpu_count() > 0 ? std::vector<Device>{Device::cpu, Device::gpu}
                         : std::vector<Device>{Device::cpu};
}

TEST(Divergence, StopsAndSaysWhereAndHowToGoOn) {
  for (const Device device : devices()) {
    const Folder folder;
    Context context(device);
    Lines log;
    context.set_log(log);
    SolverOptions options;
    options.resume_command = [](const std::string& state) { return "crema train on " + state; };
    // Weights of 1e29 after the first update, whose products overflow in the second one's loss.
    Solver solver(context, with_rate("1e30", folder, "snapshot: 1 display: 1"), options);
    const std::string message = divergence_of(solver);
    EXPECT_TRUE(starts_with(message, "in iteration 1: the loss is ")) << message;
    expect_part(message, ". It begins in layer \"loss\": its top \"loss\" holds 1 infinite of 1 ");
    expect_part(message, "A smaller base_lr (it is 1e+30), clip_gradients");
    expect_part(message, "The last snapshot is of iteration 1. Go on from there with: crema train");
    expect_part(message, folder.file("net_iter_1.solverstate"));
    EXPECT_FALSE(folder.has("net_iter_2.caffemodel"));
    for (const std::string& line : log.all) EXPECT_EQ(line.find("-nan"), std::string::npos) << line;
  }
}

TEST(Divergence, AGoodSnapshotIsNotOverwrittenByABadOne) {
  for (const Device device : devices()) {
    const Folder folder;
    folder.write("net_iter_1.caffemodel", "good");
    folder.write("net_iter_1.solverstate", "good");
    Context context(device);
    // The first update makes infinite weights; its own loss was finite.
    const std::string net =
        std::regex_replace(kNet, std::regex("top: \"loss\""), "top: \"loss\" loss_weight: 1000");
    Solver solver(context, with_rate("3e38", folder, "snapshot: 1", net));
    const std::string message = divergence_of(solver);
    expect_part(message, "in iteration 0: the update left weights that are not finite. It begins");
    expect_part(message, "No snapshot was written before");
    EXPECT_EQ(folder.read("net_iter_1.caffemodel"), "good");
    EXPECT_EQ(folder.read("net_iter_1.solverstate"), "good");
    EXPECT_EQ(folder.names().size(), 2u);
  }
}

TEST(Divergence, IgnoredItWarnsOnceAndGoesOnAsCaffeDoes) {
  for (const Device device : devices()) {
    const Folder folder;
    Context context(device);
    Lines log;
    context.set_log(log);
    Solver solver(context,
                  with_rate("1e30", folder, "snapshot: 4 display: 1 on_divergence: IGNORE"));
    log.warnings.clear();
    solver.solve();
    EXPECT_EQ(solver.iteration(), 8);
    ASSERT_EQ(log.warnings.size(), 1u);
    expect_part(log.warnings[0], "The loss of iteration 1 is ");
    EXPECT_TRUE(log.errors.empty());
    EXPECT_TRUE(folder.has("net_iter_8.solverstate"));
    expect_part(join(log.all, "\n"), "loss = nan\n");
    for (const std::string& line : log.all) EXPECT_EQ(line.find("-nan"), std::string::npos) << line;
  }
}

struct Position {
  const char* name;
  const char* broken;  // a layer's parameter that is nan before the run; "": the data are
  const char* says;
  const char* more;
  const char* advice;
};

class DivergenceOrigin : public testing::TestWithParam<Position> {};

TEST_P(DivergenceOrigin, IsTheFirstInTheOrderOfTheForwardPass) {
  const Position& row = GetParam();
  const Folder folder;
  Context context(Device::cpu);
  SolverOptions options;
  options.fills_inputs = true;
  std::string net = kNet;
  if (!*row.broken) {
    net =
        cat("layer { name: \"data\" type: \"Input\" top: \"x\" top: \"y\" input_param { shape { "
            "dim: 6 dim: 5 } shape { dim: 6 dim: 3 } } }",
            net.substr(net.find("layer { name: \"ip1\"")));
  }
  Solver solver(context, with_rate("0.1", folder, row.more, net), options);
  if (!*row.broken) solver.net().set_input("x", std::vector<float>(30, kNan).data());
  for (const Parameter& parameter : solver.net().parameters()) {
    if (parameter.layer != row.broken) continue;
    std::vector<float> values = to_floats(context, parameter.data);
    values[1] = kNan;
    from_floats(context, values.data(), parameter.data);
  }
  const std::string message = divergence_of(solver);
  expect_part(message, "in iteration 0: the loss is nan. It begins in ");
  expect_part(message, row.says);
  expect_part(message, row.advice);
  EXPECT_EQ(message.find("base_lr"), std::string::npos) << message;
  EXPECT_TRUE(folder.names().empty());
}

INSTANTIATE_TEST_SUITE_P(
    Rows, DivergenceOrigin,
    testing::Values(
        Position{"weights", "ip1", "layer \"ip1\": its parameter 0 holds 1 nan of 35 numbers", "",
                 "No update has been made yet: the layer's filler gives these values"},
        Position{"later_weights", "ip2", "layer \"ip2\": its parameter 0 holds 1 nan of 21 numbers",
                 "", "the layer's filler gives these values"},
        Position{"data", "", "layer \"data\": its top \"x\" holds 30 nan of 30 numbers. ", "",
                 "Look at the records"},
        Position{"second_batch", "ip2", "layer \"ip2\": its parameter 0", "iter_size: 2",
                 "the layer's filler"},
        Position{"with_debug_info", "ip2", "layer \"ip2\": its parameter 0", "debug_info: true",
                 "the layer's filler"}),
    [](const auto& info) { return std::string(info.param.name); });

// The cause before the first update, found in the net and its initial weights.
struct Cause {
  const char *what, *layers, *advice;
  bool from_file;
};

constexpr const char* kGlobalStats =
    "layer { name: 'n1' type: 'BatchNorm' bottom: 'x' top: 'a' batch_norm_param { "
    "use_global_stats: true } } layer { name: 'n2' type: 'BatchNorm' bottom: 'a' top: 'b' "
    "batch_norm_param { use_global_stats: true } } ";
constexpr const char* kLarge =
    "layer { name: 'p' type: 'Power' bottom: 'x' top: 'b' power_param { scale: 1e30 } } ";

const Cause kCauses[] = {
    {"untrained statistics", kGlobalStats,
     "No update has been made yet: layer \"n1\" and 1 more like it divide by the root of stored "
     "variances that are 0",
     false},
    {"large values", kLarge,
     "No update has been made yet: smaller data (transform_param: scale, mean_value) or smaller "
     "first weights",
     false},
    {"large values with weights of a file", kLarge,
     "No update has been made yet: see whether the weights, ", true},
};

TEST(Divergence, BeforeTheFirstUpdateNoRateIsToBlame) {
  for (const Cause& cause : kCauses) {
    const Folder folder;
    Context context(Device::cpu);
    const std::string net =
        cat("layer { name: 'd' type: 'DummyData' top: 'x' dummy_data_param { shape { dim: [2, 3] } "
            "data_filler { value: 1e20 } } } ",
            cause.layers,
            "layer { name: 'ip' type: 'InnerProduct' bottom: 'b' top: 'y' inner_product_param { "
            "num_output: 2 weight_filler { value: 1 } } } "
            "layer { name: 's' type: 'Reduction' bottom: 'y' top: 's' reduction_param { operation: "
            "SUMSQ } loss_weight: 1 }");
    SolverOptions options;
    if (cause.from_file) {
      Solver other(context, with_rate("0.1", folder, "", net));
      save_caffemodel(other.net(), folder.file("w.caffemodel"));
      options.weights = {folder.file("w.caffemodel")};
    }
    Solver solver(context, with_rate("0.1", folder, "", net), options);
    const std::string message = divergence_of(solver);
    expect_part(message, cause.advice);
    EXPECT_EQ(message.find("base_lr"), std::string::npos) << cause.what;
    if (cause.from_file) expect_part(message, "w.caffemodel, are for these data");
  }
}

// Blobs share memory and layers run as one: the place is found all the same.
TEST(Divergence, IsFoundInAPlannedNet) {
  Context context(Device::cpu);
  const NetFile file = parse_net_text(R"(
    layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } } }
    layer { name: "conv" type: "Convolution" bottom: "x" top: "y" convolution_param {
      num_output: 4 kernel_size: 3 weight_filler { type: "constant" value: -1 } } }
    layer { name: "relu" type: "ReLU" bottom: "y" top: "y" }
    layer { name: "log" type: "Log" bottom: "y" top: "z" }
    layer { name: "sum" type: "Reduction" bottom: "z" top: "sum" })",
                                      "net.prototxt");
  NetOptions options;
  options.state.set_phase(TEST);
  Net net(context, file.net, options);
  std::vector<float> x(2 * 3 * 64, 1);
  net.set_input("x", x.data());
  net.forward(0);
  const auto found = first_not_finite(net, 0);
  ASSERT_TRUE(found);
  expect_part(found->text(), "layer \"log\": its top \"z\"");
  expect_part(found->text(), " holds 288 infinite of 288 numbers");
  x[5] = kNan;
  net.set_input("x", x.data());
  expect_part(first_not_finite(net, 0)->text(), "layer \"in\": its top \"x\" holds 1 nan of 384");
}

}  // namespace divergence_test
}  // namespace crema::tests
