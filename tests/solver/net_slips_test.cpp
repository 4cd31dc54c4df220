// Slips in a net that concern more than one layer: bottoms in the wrong order, test data of another
// shape, two layers of one name. Each message has the place, the cause and what to do.
#include <gtest/gtest.h>

#include "fixtures.h"
#include "solver/check/check.h"

namespace crema::tests {
namespace net_slips_test {

std::string error_of_net(const std::string& net, Lines* log = nullptr) {
  Context context(Device::cpu);
  if (log) context.set_log(*log);
  return error_or_none(
      [&] { Solver solver(context, solver_file("test_iter: 1 test_interval: 9", net)); });
}

std::string data(const std::string& shapes, const std::string& more = "") {
  std::string tops, dims;
  for (const std::string& shape : split(shapes, ';')) {
    tops += cat(" top: \"", trim(shape.substr(0, shape.find('='))), "\"");
    dims += " shape {";
    for (const std::string& dim : split(shape.substr(shape.find('=') + 1), 'x'))
      dims += cat(" dim: ", dim);
    dims += " }";
  }
  return cat("layer { name: \"data\" type: \"DummyData\"", tops, " dummy_data_param {", dims, " } ",
             more, " }\n");
}

std::string scores(const std::string& name, int outputs) {
  return cat("layer { name: \"", name, "\" type: \"InnerProduct\" bottom: \"x\" top: \"", name,
             "\" inner_product_param { num_output: ", outputs, " } }\n");
}

TEST(NetSlips, BottomsInTheWrongOrder) {
  struct Row {
    const char *type, *bottoms, *data, *said;
  };
  const std::string in_order = "and would fit in another order: ";
  for (const Row& row : {
           Row{"SoftmaxWithLoss", "y z", "x=6x5;y=6", "bottom: \"z\" bottom: \"y\""},
           Row{"Accuracy", "y z", "x=6x5;y=6", "bottom: \"z\" bottom: \"y\""},
           Row{"HingeLoss", "y z", "x=6x5;y=6", "bottom: \"z\" bottom: \"y\""},
           Row{"MultinomialLogisticLoss", "y z", "x=6x5;y=6", "bottom: \"z\" bottom: \"y\""},
           Row{"ContrastiveLoss", "y z z", "x=6x5;y=6",
               "bottom: \"z\" bottom: \"z\" bottom: \"y\""},
           Row{"InfogainLoss", "y z h", "x=6x5;y=6;h=1x1x3x3",
               "bottom: \"z\" bottom: \"y\" bottom: \"h\""},
       }) {
    std::string bottoms;
    for (const std::string& bottom : split(row.bottoms, ' '))
      bottoms += cat(" bottom: \"", bottom, "\"");
    const std::string net = cat(data(row.data), scores("z", 3), "layer { name: \"loss\" type: \"",
                                row.type, "\"", bottoms, " top: \"loss\" }\n");
    const std::string error = error_of_net(net);
    expect_part(error, "solver.prototxt:3:1: layer \"loss\": ");
    expect_part(error, "its bottoms are \"y\" 6");
    expect_part(error, in_order + row.said);
  }
  // No message if no order fits.
  const std::string error =
      error_of_net(cat(data("x=6x5;y=7"), scores("z", 3),
                       "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"z\" bottom: "
                       "\"y\" top: \"loss\" }\n"));
  EXPECT_NE(error, "");
  EXPECT_EQ(error.find("another order"), error.npos) << error;
}

// Both orders have fitting shapes; only the gradient shows it.
TEST(NetSlips, LabelsBeforeScoresOfTheSameShape) {
  const auto error = [](const std::string& bottoms) {
    return error_of_net(cat(data("x=6x5;y=6x3"), scores("z", 3),
                            "layer { name: \"loss\" type: \"SigmoidCrossEntropyLoss\" ", bottoms,
                            " top: \"loss\" }\n"));
  };
  expect_part(
      error("bottom: \"y\" bottom: \"z\""),
      "solver.prototxt:3:1: layer \"loss\": bottom 1 is \"z\", where this loss takes labels "
      "and sends no gradient, but the layers that learn are behind it, and none behind "
      "\"y\": are the bottoms in the wrong order? Scores come first");
  EXPECT_EQ(error("bottom: \"z\" bottom: \"y\""), "");
}

TEST(NetSlips, TestDataOfAnotherShape) {
  const std::string error = error_of_net(
      cat(data("x=6x5;y=6", "include { phase: TRAIN }"),
          data("x=6x7;y=6", "include { phase: TEST }"), scores("z", 3),
          "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"z\" bottom: \"y\" }\n"));
  expect_part(error,
              "solver.prototxt:3:1: layer \"z\": parameter 0 has shape 3x7 in this net, but "
              "3x5 in the training net that owns it (solver.prototxt:3:1): the data differ, "
              "\"x\" is 6x7 here and \"x\" 6x5 there: give both phases samples of one size");
}

TEST(NetSlips, TwoLayersOfOneName) {
  const auto net = [](const std::string& second) {
    return cat(
        data("x=6x5;y=6"), scores("a", 5), "layer { name: \"", second,
        "\" type: \"InnerProduct\" bottom: \"a\" top: \"z\" inner_product_param { num_output: "
        "5 weight_filler { type: \"xavier\" } } }\n",
        "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"z\" bottom: \"y\" }\n");
  };
  Lines log, silent;
  EXPECT_EQ(error_of_net(net("a"), &log), "");
  EXPECT_EQ(error_of_net(net("b"), &silent), "");
  const auto warnings = [](const Lines& lines) {
    std::string all;
    for (const std::string& line : lines.all) {
      if (line.find("has this name and weights, too") != line.npos) all += line + "\n";
    }
    return all;
  };
  expect_part(warnings(log),
              "solver.prototxt:3:1: layer \"a\": a layer above has this name and "
              "weights, too (solver.prototxt:2:1). ");
  EXPECT_EQ(warnings(silent), "");
  // The test net takes the first one's weights for the first, the second one's for the second.
  Context context(Device::cpu);
  Solver solver(context, solver_file("test_iter: 1 test_interval: 9 random_seed: 1", net("a")));
  const auto &trained = solver.net().parameters(), &tested = solver.test_nets()[0]->parameters();
  ASSERT_EQ(trained.size(), tested.size());
  for (size_t i = 0; i < trained.size(); ++i)
    EXPECT_EQ(trained[i].data.raw(), tested[i].data.raw()) << i;
}

TEST(NetSlips, DataFarFromZero) {
  const Folder folder;
  const std::string database =
      image_database(folder, 60, {2, 3, 3}, [](int64_t i) { return static_cast<int>(i % 3); });
  const auto said = [&](const std::string& between) {
    std::string all;
    const std::string data =
        cat("layer { name: \"in\" type: \"Data\" top: \"x\" top: \"y\" data_param { source: \"",
            database, "\" backend: LMDB batch_size: 10 } transform_param { mean_value: -70 } }\n");
    const SolverFile file = solver_file(
        "max_iter: 9",
        cat(data, between, scores("z", 3),
            "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"z\" bottom: \"y\" }\n"));
    for (const Finding& finding : check_training(file, {})) all += line_of(finding) + "\n";
    return all;
  };
  expect_part(said(""), "solver.prototxt:1:");
  expect_part(said(""),
              "and base_lr 0.1 may be too high for them: write transform_param { mean_value: 12");
  EXPECT_EQ(said("layer { name: \"bn\" type: \"BatchNorm\" bottom: \"x\" top: \"x\" }\n"), "");
}

}  // namespace net_slips_test
}  // namespace crema::tests
