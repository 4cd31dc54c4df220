// Output of `crema test` if results grow, are not finite, or come from no data; and if a net's
// inputs are unfilled.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/program.h"

namespace crema::tests {
namespace results_test {

constexpr const char* kTest = "test -model net.prototxt -weights init.caffemodel ";

// The value of each line "..., NAME = VALUE" or "NAME = VALUE".
std::vector<double> values_after(const Outcome& outcome, const std::string& start,
                                 const std::string& name) {
  std::vector<double> values;
  for (const std::string& line : outcome.messages()) {
    const size_t at = line.find(name + " = ");
    if (line.rfind(start, 0) == 0 && at != std::string::npos)
      values.push_back(std::stod(line.substr(at + name.size() + 3)));
  }
  return values;
}

TEST(TestVerb, ResultsMayGrowFromBatchToBatch) {
  const Folder folder;
  folder.copy_golden("trainlog/init.caffemodel", "init.caffemodel");
  // In each batch as many of 64 values are left as random numbers exceed their threshold.
  folder.write("net.prototxt", R"(
    layer { name: "data" type: "DummyData" top: "x" top: "chance" dummy_data_param {
      shape { dim: 64 dim: 1 } shape { dim: 64 dim: 1 }
      data_filler { type: "uniform" min: 1 max: 2 } data_filler { type: "uniform" min: 0 max: 1 } } }
    layer { name: "choice" type: "Threshold" bottom: "chance" top: "choice"
      threshold_param { threshold: 0.5 } }
    layer { name: "some" type: "Filter" bottom: "x" bottom: "choice" top: "some" }
    layer { name: "mean" type: "Reduction" bottom: "x" top: "mean"
      reduction_param { operation: MEAN } loss_weight: 2 })");
  const Outcome outcome = run(folder, std::string(kTest) + "-iterations 12");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  size_t minimum = 64, maximum = 0;
  double sum = 0, count = 0;
  for (int batch = 0; batch < 12; ++batch) {
    const std::vector<double> values =
        values_after(outcome, "Batch " + std::to_string(batch) + ", ", "some");
    minimum = std::min(minimum, values.size());
    maximum = std::max(maximum, values.size());
    for (const double value : values) sum += value;
    count += static_cast<double>(values.size());
  }
  EXPECT_LT(minimum, maximum);
  const std::vector<double> means = values_after(outcome, "some", "some");
  ASSERT_EQ(means.size(), 1u) << "one mean of all values";
  EXPECT_NEAR(means[0], sum / count, 1e-4);
  expect_part(outcome.err, "] mean = 1.");
  expect_part(outcome.err, " (* 2 = ");
}

// Requested on the command line, with a net that has only a loss.
TEST(TestVerb, MetricsOfAClassifierNeedNoChangeOfItsNet) {
  const Folder folder;
  folder.copy_golden("trainlog/init.caffemodel", "init.caffemodel");
  folder.write("net.prototxt", R"(
    layer { name: "data" type: "DummyData" top: "scores" top: "label" dummy_data_param {
      shape { dim: 8 dim: 3 } shape { dim: 8 } data_filler { type: "gaussian" std: 1 }
      data_filler { type: "constant" value: 1 } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "scores" bottom: "label" top: "loss" })");
  const Outcome good =
      run(folder, std::string(kTest) + "-iterations 4 -metrics top3,confusion,per_class");
  EXPECT_EQ(good.code, 0) << good.err;
  for (const char* part : {"] top3 = 1\n", "] accuracy_of_class_0 = nan\n",
                           "] Confusion (rows: labels, columns: what the net says):\n"})
    expect_part(good.err, part);
  // By default: the confusion, and each class, here with 32 records of class 1 and no other.
  const Outcome plain = run(folder, std::string(kTest) + "-iterations 4");
  EXPECT_EQ(plain.code, 0) << plain.err;
  for (const char* part : {"] Confusion (rows: labels, columns: what the net says):\n",
                           "] Class  precision    recall        f1   records\n",
                           "]     0     0.0000       nan    0.0000         0\n", "        32\n"})
    expect_part(plain.err, part);
  const Outcome many =
      run(folder, std::string(kTest) +
                      "-iterations 4 -set 'layer[data].dummy_data_param.shape[0]={dim:8,dim:25}'");
  EXPECT_EQ(many.code, 0) << many.err;
  expect_part(many.err, "] Most frequent confusions (-metrics confusion writes all to");
  expect_part(many.err, "]   label 1 as ");
  EXPECT_EQ(many.err.find("] Confusion (rows"), std::string::npos);
  const Outcome json =
      run(folder, std::string(kTest) + "-iterations 4 -quiet -json -metrics top3,confusion");
  ASSERT_EQ(json.code, 0) << json.err;
  const auto object = nlohmann::json::parse(json.out);  // nothing else is on stdout
  EXPECT_EQ(json.err, "");
  EXPECT_EQ(object["iterations"], 4);
  EXPECT_GE(object["seconds"], 0);
  EXPECT_NEAR(object["loss"].get<double>(), values_after(good, "loss", "loss").at(0), 1e-5);
  EXPECT_EQ(object["outputs"]["loss"], object["loss"]);
  EXPECT_EQ(object["metrics"]["top3"], 1);
  // All 32 records are of class 1.
  EXPECT_EQ(object["classes"][0]["recall"], nullptr);
  const auto& one = object["classes"][1];
  EXPECT_EQ(one["records"], 32);
  EXPECT_EQ(one["precision"], 1);
  EXPECT_NEAR(one["recall"].get<double>(), object["confusion"][1][1].get<double>() / 32, 1e-6);
  const auto by_default = nlohmann::json::parse(run(folder, std::string(kTest) + "-json").out);
  EXPECT_EQ(by_default["classes"].size(), 3u);
  expect_part(run(folder, std::string(kTest) + "-json -dump_plan").err, "give one of them");

  const Outcome bad = run(folder, std::string(kTest) + "-metrics top3,acu");
  EXPECT_EQ(bad.code, 1);
  expect_part(bad.err, "-metrics top3,acu: there is no \"acu\"");
}

TEST(TestVerb, ResultsThatAreNotFiniteAreAnErrorAfterAllLines) {
  const Folder folder;
  folder.copy_golden("trainlog/init.caffemodel", "init.caffemodel");
  folder.write("net.prototxt", R"(
    layer { name: "data" type: "DummyData" top: "x" dummy_data_param { shape { dim: 1 }
      data_filler { type: "constant" value: -1 } } }
    layer { name: "same" type: "Power" bottom: "x" top: "y" power_param { scale: 1 } }
    layer { name: "root" type: "Power" bottom: "y" top: "z" power_param { power: 0.5 } })");
  const Outcome outcome = run(folder, std::string(kTest) + "-iterations 2");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err.find("-nan"), std::string::npos) << outcome.err;
  expect_part(outcome.err, "] Batch 1, z = nan\n");
  expect_part(outcome.err, "] z = nan\n");
  ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
  expect_part(outcome.errors()[0], "the results of batch 0 are not finite. It begins in layer ");
  expect_part(outcome.errors()[0], "its top \"z\" holds 1 nan of 1 numbers");
}

constexpr const char* kDeployed = R"(name: "deployed"

input: "data"
input_shape { dim: 2 dim: 120 }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 15 } }
layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "ip" top: "loss" }
)";

TEST(TestVerb, SaysWhatItFeedsToADeployedNet) {
  const Folder folder;
  folder.copy_golden("trainlog/init.caffemodel", "init.caffemodel");
  folder.write("net.prototxt", kDeployed);
  const Outcome outcome = run(folder, std::string(kTest) + "-iterations 1");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.err, "Random numbers as data 2x120: the net reads no data there");
  const Outcome assumed = run(folder, std::string(kTest) + "-iterations 1 -assume data=5x120");
  EXPECT_EQ(assumed.code, 0) << assumed.err;
  expect_part(assumed.err, "Random numbers as data 5x120");
}

TEST(UnfedInputs, AreAnErrorWhereRealDataAreNeeded) {
  const Folder folder;
  folder.copy_golden("trainlog/init.caffemodel", "init.caffemodel");
  folder.write("net.prototxt", kDeployed);
  folder.write("solver.prototxt",
               "net: \"net.prototxt\" base_lr: 0.01 lr_policy: \"fixed\" max_iter: 3\n");
  for (const std::string command :
       {"train -solver solver.prototxt",
        "extract_features init.caffemodel net.prototxt ip features 2 lmdb"}) {
    const Outcome refused = run(folder, command);
    EXPECT_EQ(refused.code, 1) << command;
    ASSERT_EQ(refused.errors().size(), 1u) << refused.err;
    expect_part(refused.errors()[0], "net.prototxt:3:1: layer \"input\": nothing fills data");
    EXPECT_FALSE(folder.has("features") || folder.has("solver_iter_3.caffemodel"));
  }
  EXPECT_EQ(run(folder, "train -solver solver.prototxt -assume default").code, 0);
  const Outcome assumed =
      run(folder,
          "extract_features -assume data=4x120 init.caffemodel net.prototxt ip features 2 lmdb");
  EXPECT_EQ(assumed.code, 0) << assumed.err;
  expect_part(assumed.err, "Extracted features of 8 query images for feature blob ip");
}

// A test net of a solver, too.
TEST(UnfedInputs, AreAnErrorInATestNet) {
  const Folder folder;
  folder.write("net.prototxt", R"(
    layer { name: "data" type: "DummyData" top: "data" include { phase: TRAIN }
      dummy_data_param { shape { dim: 2 dim: 3 } } }
    layer { name: "in" type: "Input" top: "data" include { phase: TEST }
      input_param { shape { dim: 2 dim: 3 } } }
    layer { name: "loss" type: "EuclideanLoss" bottom: "data" bottom: "data" top: "loss" })");
  folder.write("solver.prototxt",
               "net: \"net.prototxt\" base_lr: 0.01 lr_policy: \"fixed\" max_iter: 3 test_iter: 1 "
               "test_interval: 1\n");
  const Outcome refused = run(folder, "train -solver solver.prototxt");
  EXPECT_EQ(refused.code, 1);
  ASSERT_EQ(refused.errors().size(), 1u) << refused.err;
  expect_part(refused.errors()[0], "net.prototxt:4:5: layer \"in\": nothing fills data");
}

}  // namespace results_test
}  // namespace crema::tests
