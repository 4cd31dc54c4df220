// epoch_log: where epochs end, what their means are, and the line in the log.
#include "solver/iteration/epochs.h"

#include <gtest/gtest.h>

#include "fixtures.h"

namespace crema {
namespace epochs_test {

constexpr int kRecords = 10, kBatch = 4, kUpdates = 20;

std::string net_text(const std::string& source) {
  return cat(
      "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" data_param { source: \"",
      source, "\" backend: LMDB batch_size: ", kBatch, " } transform_param { scale: 0.01 } }",
      "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"data\" top: \"ip\" "
      "inner_product_param { "
      "num_output: 3 weight_filler { type: \"xavier\" } } }"
      "layer { name: \"acc\" type: \"Accuracy\" bottom: \"ip\" bottom: \"label\" top: \"acc\" }"
      "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\" top: "
      "\"loss\" }");
}

// Keeps what each update showed and each epoch said.
class Reader : public EventReader {
 public:
  void read(const Event& event) override {
    if (const auto* display = std::get_if<event::Display>(&event)) displays.push_back(*display);
    if (const auto* epoch = std::get_if<event::Epoch>(&event)) epochs.push_back(*epoch);
    if (const auto* test = std::get_if<event::TestResult>(&event)) tests.push_back(*test);
  }
  std::vector<event::Display> displays;
  std::vector<event::Epoch> epochs;
  std::vector<event::TestResult> tests;
};

double value_of(const std::vector<OutputValue>& outputs, const std::string& name) {
  for (const OutputValue& output : outputs)
    if (output.name == name) return output.value;
  ADD_FAILURE() << "no output " << name;
  return 0;
}

class EpochsTest : public testing::TestWithParam<std::tuple<Device, int, int>> {};

// Device, iter_size, display: on a GPU, display 0 lets several updates run in one CUDA graph.
TEST_P(EpochsTest, MeansOfAllItsBatches) {
  const auto [device, iter_size, display] = GetParam();
  if (device == Device::gpu && gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  const tests::Folder folder;
  const std::string source = tests::image_database(
      folder, kRecords, {1, 2, 2}, [](int64_t i) { return static_cast<int>(i % 3); });
  const auto run = [&](int shown, tests::Lines* lines) {
    Context context(device);
    context.set_log(*lines);
    Reader reader;
    SolverOptions options;
    options.readers = {&reader};
    Solver solver(context,
                  parse_solver_text(
                      cat("net_param {", net_text(source),
                          "} base_lr: 0.1 lr_policy: \"fixed\" "
                          "test_iter: 2 test_initialization: false random_seed: 3 epoch_log: true "
                          "snapshot_after_train: false max_iter: ",
                          kUpdates, " iter_size: ", iter_size, " display: ", shown),
                      "solver.prototxt"),
                  options);
    solver.solve();
    return reader;
  };
  tests::Lines lines;
  const Reader each = run(1, &lines), reader = run(display, &lines);

  std::vector<int64_t> ends;
  for (int64_t update = 1; update <= kUpdates; ++update) {
    const int64_t records = kBatch * iter_size;
    if (update * records / kRecords > (update - 1) * records / kRecords) ends.push_back(update);
  }
  ASSERT_EQ(reader.epochs.size(), ends.size());
  ASSERT_EQ(reader.tests.size(), ends.size());
  int64_t begin = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    const event::Epoch& epoch = reader.epochs[i];
    EXPECT_EQ(epoch.iteration, ends[i]);
    EXPECT_EQ(epoch.epoch, ends[i] * kBatch * iter_size / kRecords);
    EXPECT_EQ(epoch.epochs, kUpdates * kBatch * iter_size / kRecords);
    double loss = 0;
    for (int64_t k = begin; k < ends[i]; ++k) loss += each.displays[k].loss;
    EXPECT_NEAR(value_of(epoch.train, "loss"), loss / static_cast<double>(ends[i] - begin), 1e-5);
    EXPECT_EQ(value_of(epoch.test, "acc"), value_of(reader.tests[i].outputs, "acc"));
    begin = ends[i];
  }
  int found = 0;
  for (const std::string& line : lines.infos) {
    // The losses come first.
    found += starts_with(line, "Epoch 2/") && line.find("s - loss: ") != std::string::npos &&
             line.find(" - acc: ") < line.find(" - val_loss: ") &&
             line.find(" - val_loss: ") < line.find(" - val_acc: ");
  }
  EXPECT_EQ(found, 2);
}

INSTANTIATE_TEST_SUITE_P(Runs, EpochsTest,
                         testing::Combine(testing::Values(Device::cpu, Device::gpu),
                                          testing::Values(1, 2), testing::Values(0, 1)));

TEST(Epochs, NeedASourceThatKnowsItsSize) {
  Context context(Device::cpu);
  context.set_log(silent_log());
  tests::expect_part(
      tests::error_of(
          [&] { Solver(context, tests::solver_file("test_iter: 1 epoch_log: true max_iter: 5")); }),
      "epoch_log needs a source that knows how many records it has, as databases");
}

}  // namespace epochs_test
}  // namespace crema
