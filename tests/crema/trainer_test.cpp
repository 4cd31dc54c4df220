// Trainer: stepping by hand gives the same run as Solver.
#include <cmath>
#include <thread>

#include "crema.h"
#include "solver/fixtures.h"

namespace crema::tests {
namespace trainer_test {

const char* const kRates = "base_lr: 0.1 lr_policy: \"step\" gamma: 0.5 stepsize: 3\n";

class TrainerTest : public testing::Test {
 protected:
  // A solver around a net, with `more` fields.
  std::string write(const std::string& name, const std::string& more,
                    const std::string& net) const {
    folder_.write(name, cat("net_param {", net, "}\n", kRates, "snapshot_prefix: \"",
                            folder_.file(name), "\"\n", more));
    return folder_.file(name);
  }
  static std::vector<std::vector<float>> weights(const Trainer& trainer) {
    std::vector<std::vector<float>> all;
    for (const ParameterInfo& p : trainer.parameters())
      all.push_back(trainer.parameter(p.layer, p.index));
    return all;
  }

  const std::string momentum_ = "momentum: 0.9 average_loss: 3 random_seed: 5\n";
  Folder folder_;
};

TEST_F(TrainerTest, TrainsAsTheSolverDoes) {
  const std::string more = cat(momentum_, "display: 1 max_iter: 8 test_iter: 4 test_interval: 100");
  const std::string path = write("solver.prototxt", more, kNet);
  Context context(Device::cpu);
  Losses losses;
  SolverOptions options;
  options.readers = {&losses};
  Solver solver(context, read_solver_file(path), options);
  Trainer trainer(path);
  EXPECT_EQ(trainer.max_iterations(), 8);
  EXPECT_TRUE(std::isnan(trainer.loss()));
  for (int i = 1; i <= 4; ++i) {
    EXPECT_FLOAT_EQ(trainer.learning_rate(), i <= 3 ? 0.1 : 0.05);
    solver.step(1);
    trainer.step();
    EXPECT_EQ(trainer.iteration(), i);
    EXPECT_EQ(trainer.loss(), losses.values.back());
  }
  std::vector<float> all;
  for (const auto& blob : weights(trainer)) all.insert(all.end(), blob.begin(), blob.end());
  EXPECT_EQ(all, parameters_of(solver));
  trainer.solve();
  EXPECT_EQ(trainer.iteration(), 8);
  EXPECT_TRUE(folder_.has("solver.prototxt_iter_8.solverstate"));
}

TEST_F(TrainerTest, ASnapshotGoesOnAsIfNothingHadBeen) {
  const std::string path = write("solver.prototxt", momentum_, kNet);
  Trainer whole(path), first(path);
  whole.step(7);
  first.step(4);
  const SavedFiles saved = first.snapshot();
  EXPECT_EQ(saved.state, folder_.file("solver.prototxt_iter_4.solverstate"));
  Trainer second(path, {.snapshot = saved.state});
  EXPECT_EQ(second.iteration(), 4);
  second.step(3);
  EXPECT_EQ(weights(second), weights(whole));
  EXPECT_EQ(second.loss(), whole.loss());

  Trainer tuned(path, {.weights = {saved.weights}});
  EXPECT_EQ(tuned.iteration(), 0);
  EXPECT_EQ(weights(tuned), weights(first));
  const std::string weighted =
      write("weighted.prototxt", cat(momentum_, "weights: \"none.caffemodel\""), kNet);
  EXPECT_EQ(weights(Trainer(weighted, {.snapshot = saved.state})), weights(first));
  expect_part(
      error_of([&] { Trainer(path, {.weights = {saved.weights}, .snapshot = saved.state}); }),
      "give one of them");
}

TEST_F(TrainerTest, TestsGiveNamedNumbers) {
  const std::string path =
      write("solver.prototxt", cat(momentum_, "test_iter: 4 test_interval: 2"), kNet);
  Trainer trainer(path), other(path);
  trainer.step(4);  // with a test of its own
  const std::vector<TestResult> results = trainer.test();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_FALSE(results[0].loss);
  ASSERT_EQ(results[0].outputs.size(), 1u);
  EXPECT_EQ(results[0].outputs[0].name, "loss");
  EXPECT_EQ(results[0].outputs[0].loss_weight, 1);
  EXPECT_GT(results[0].outputs[0].value, 0);
  EXPECT_NE(other.test()[0].outputs[0].value, results[0].outputs[0].value);
}

TEST_F(TrainerTest, TheCallerFillsInputLayers) {
  const std::string net = R"(
    name: "line"
    layer { name: "x" type: "Input" top: "x" top: "y" input_param { shape { dim: 3 dim: 2 } shape { dim: 3 dim: 1 } } }
    layer { name: "fc" type: "InnerProduct" bottom: "x" top: "fc" inner_product_param { num_output: 1 } }
    layer { name: "loss" type: "EuclideanLoss" bottom: "fc" bottom: "y" top: "loss" })";
  const std::string path =
      write("solver.prototxt", "test_iter: 1 test_interval: 1000 random_seed: 1", net);
  Trainer trainer(path);
  const std::vector<float> x = {1, 0, 0, 1, 1, 1}, y = {2, -1, 1};
  trainer.set_input("x", x);
  expect_part(error_of([&] { trainer.step(); }), "no values were set for y");
  trainer.set_input("y", y);
  expect_part(error_of([&] { trainer.step(); }), "no values were set for x, y");  // of the test net
  trainer.set_test_input(0, "x", x);
  trainer.set_test_input(0, "y", y);
  EXPECT_EQ(trainer.test_inputs(0)[1].shape, (std::vector<int64_t>{3, 1}));
  trainer.step();
  const double first = trainer.loss();
  trainer.step(8);
  EXPECT_LT(trainer.loss(), 0.7 * first);
  trainer.set_parameter("fc", 0, std::vector<float>{2, -1});
  trainer.set_parameter("fc", 1, std::vector<float>{0});
  EXPECT_EQ(trainer.test()[0].outputs[0].value, 0);
  trainer.step();
  EXPECT_EQ(trainer.loss(), 0);
  expect_part(error_of([&] { trainer.set_input("z", x); }), "has no input \"z\"");
  expect_part(error_of([&] { trainer.set_test_input(1, "x", x); }), "there is no test net 1");
  expect_part(error_of([&] { trainer.step(-1); }), "step(-1)");
  trainer.set_input("y", std::vector<float>{NAN, 0, 0});
  expect_part(error_of([&] { trainer.step(); }), "the loss is nan");
}

// As in Caffe, whose early files name none: SOFTMAX_LOSS with two bottoms.
TEST_F(TrainerTest, LossesNeedNoTop) {
  const std::string body = R"(
    layer { name: "data" type: "DummyData" top: "x" top: "y" dummy_data_param {
      shape { dim: 4 dim: 6 } shape { dim: 4 } data_filler { type: "gaussian" }
      data_filler { type: "constant" value: 1 } } }
    layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
      inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "y" )";
  const std::string early = R"(
    layers { name: "data" type: DUMMY_DATA top: "x" top: "y" dummy_data_param {
      shape { dim: 4 dim: 6 } shape { dim: 4 } data_filler { type: "gaussian" }
      data_filler { type: "constant" value: 1 } } }
    layers { name: "ip" type: INNER_PRODUCT bottom: "x" top: "ip"
      inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
    layers { name: "loss" type: SOFTMAX_LOSS bottom: "ip" bottom: "y" })";
  Trainer named(write("named.prototxt", momentum_, body + "top: \"loss\" }"));
  const std::vector<float> before = named.parameter("ip");
  named.step(3);
  EXPECT_NE(named.parameter("ip"), before);
  for (const std::string& text : {body + "}", body + "loss_weight: 1 }", early}) {
    SCOPED_TRACE(text);
    Trainer unnamed(write("unnamed.prototxt", momentum_, text));
    unnamed.step(3);
    EXPECT_EQ(unnamed.loss(), named.loss());
    EXPECT_EQ(unnamed.parameter("ip"), named.parameter("ip"));
  }
}

TEST_F(TrainerTest, MistakesHaveTheirPlace) {
  const std::string path = write("solver.prototxt", "iter_size: 0", kNet);
  expect_part(error_of([&] { Trainer trainer(path); }), path + ":");
  expect_part(error_of([&] { Trainer trainer(folder_.file("none.prototxt")); }), "none.prototxt");
}

TEST_F(TrainerTest, ThreadsDoNotDisturbEachOther) {
  std::vector<std::string> files;
  for (int i = 0; i < 3; ++i)
    files.push_back(write(cat("solver", i, ".prototxt"), cat("random_seed: ", i), kNet));
  std::vector<std::vector<std::vector<float>>> wanted, found(files.size());
  for (const std::string& file : files) {
    Trainer trainer(file);
    trainer.step(20);
    wanted.push_back(weights(trainer));
  }
  EXPECT_NE(wanted[0], wanted[1]);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < files.size(); ++i) {
    threads.emplace_back([&, i] {
      Trainer trainer(files[i]);
      trainer.step(20);
      trainer.snapshot();
      found[i] = weights(trainer);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, wanted);
}

}  // namespace trainer_test
}  // namespace crema::tests
