// Fields that count epochs: their values in iterations, what is due when, and what is refused.
#include "solver/fields/epoch_fields.h"

#include <gtest/gtest.h>

#include "fixtures.h"
#include "ranks.h"

namespace crema::tests {
namespace epoch_fields_test {

constexpr int kRecords = 10, kBatch = 4;

struct Case {
  const char* text;
  EpochLength length;
  const char* iterations;  // the fields that follow
};

void PrintTo(const Case& row, std::ostream* out) { *out << row.text; }

class EpochFields : public testing::TestWithParam<Case> {};

TEST_P(EpochFields, BecomeIterations) {
  const Case& row = GetParam();
  SolverFile file = parse_solver_text(row.text, "solver.prototxt");
  const SolverParameter before = file.solver;
  check_epoch_fields(file);
  const std::string said = count_in_iterations(row.length, &file);
  SolverParameter wanted = parse_solver_text(row.iterations, "wanted").solver;
  wanted.MergeFrom(before);
  EXPECT_EQ(file.solver.DebugString(), wanted.DebugString());
  EXPECT_EQ(said.empty(), first_epoch_field(before).empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, EpochFields,
    testing::Values(
        Case{"max_iter: 7", {}, ""}, Case{"max_epoch: 0 max_iter: 7", {}, ""},
        Case{"max_epoch: 3", {100, 10}, "max_iter: 30"},
        Case{"max_epoch: 3", {100, 30}, "max_iter: 10"},
        Case{"max_epoch: 3", {100, 64}, "max_iter: 5"},  // 4 updates read 256 of 300 records
        Case{"max_epoch: 90", {1281167, 256}, "max_iter: 450411"},
        // 0.1 is not the float next to it, which would need one record more.
        Case{"max_epoch: 0.1", {1000, 100}, "max_iter: 1"},
        Case{"max_epoch: 0.7", {1000, 100}, "max_iter: 7"},
        Case{"max_epoch: 0.001", {100, 10}, "max_iter: 1"},
        Case{"test_interval_epoch: 0.5 snapshot_epoch: 2",
             {100, 10},
             "test_interval: 5 snapshot: 20"},
        Case{"stepsize_epoch: 2.5 warmup_epoch: 0.25", {100, 10}, "stepsize: 25 warmup_iter: 3"},
        Case{"initial_momentum_epoch: 5", {100, 10}, "initial_momentum_iter: 50"},
        Case{"stepvalue_epoch: [1, 2.5, 0]", {100, 30}, "stepvalue: 4 stepvalue: 9 stepvalue: 0"}));

TEST(EpochFields, SayWhatTheyBecome) {
  SolverFile file = parse_solver_text("max_epoch: 3 stepvalue_epoch: [1, 1.5]", "solver.prototxt");
  EXPECT_EQ(count_in_iterations({100, 10}, &file),
            "An epoch has 100 records, an iteration reads 10: max_epoch 3 is max_iter 30, "
            "stepvalue_epoch 1 is stepvalue 10, stepvalue_epoch 1.5 is stepvalue 15");
}

struct Refused {
  const char *text, *message;
};

TEST(EpochFields, AreRefused) {
  for (const auto& [text, message] :
       {Refused{
            "max_iter: 7\nmax_epoch: 3",
            "solver.prototxt:2:1: max_epoch is given together with max_iter (solver.prototxt:1:1)"},
        Refused{"stepvalue: 7\n  stepvalue_epoch: [3, 4]",
                "stepvalue_epoch is given together with stepvalue (solver.prototxt:1:"},
        Refused{"base_lr: 1\nsnapshot_epoch: -1", "solver.prototxt:2:1: snapshot_epoch is -1"},
        Refused{"stepvalue_epoch: 3\nstepvalue_epoch: -4",
                "solver.prototxt:2:1: stepvalue_epoch is -4"}}) {
    const SolverFile file = parse_solver_text(text, "solver.prototxt");
    expect_part(error_of([&] { check_epoch_fields(file); }), message);
  }
  SolverFile file = parse_solver_text("\nmax_epoch: 3", "solver.prototxt");
  expect_part(error_of([&] { count_in_iterations({}, &file); }),
              "solver.prototxt:2:1: max_epoch counts epochs of the training data, but no source");
  expect_part(error_of([&] {
                count_in_iterations({int64_t{1} << 40, 1}, &file);
              }),
              "solver.prototxt:2:1: max_epoch is 3, which would be 3298534883328 iterations");
}

struct Due {
  float epochs;
  int interval;
  EpochLength length;
  std::vector<int64_t> updates;  // of the first 12
};

TEST(EpochFields, DoNotDrift) {
  for (const Due& row :
       {Due{0, 0, {}, {}}, Due{0, 5, {}, {0, 5, 10}}, Due{1, 0, {100, 10}, {0, 10}},
        Due{1, 9, {100, 30}, {0, 4, 7, 10}}, Due{0.1f, 0, {100, 5}, {0, 2, 4, 6, 8, 10, 12}},
        Due{0.25f, 0, {10, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
        Due{0.7f, 0, {100, 20}, {0, 4, 7, 11}}}) {
    std::vector<int64_t> found;
    for (int64_t i = 0; i <= 12; ++i) {
      if (falls_due(i, row.interval, row.epochs, row.length)) found.push_back(i);
    }
    EXPECT_EQ(found, row.updates) << row.epochs << " of " << row.length.records;
  }
}

// Keeps when tests and snapshots came, and the rates.
class Dates : public EventReader {
 public:
  void read(const Event& event) override {
    if (const auto* test = std::get_if<event::TestResult>(&event)) tests.push_back(test->iteration);
    if (const auto* done = std::get_if<event::SnapshotDone>(&event))
      snapshots.push_back(done->iteration);
    if (const auto* rate = std::get_if<event::LearningRate>(&event)) rates.push_back(rate->rate);
    if (const auto* start = std::get_if<event::Start>(&event)) max_iter = start->max_iter;
    if (const auto* epoch = std::get_if<event::Epoch>(&event)) epochs.push_back(epoch->epochs);
    if (const auto* step = std::get_if<event::Step>(&event)) last = *step;
  }
  std::vector<int64_t> tests, snapshots, epochs;
  std::vector<double> rates;
  int64_t max_iter = 0;
  event::Step last;
};

SolverFile solver_of(const Folder& folder, const std::string& source, int batch,
                     const std::string& more) {
  return parse_solver_text(
      cat("net_param { layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" "
          "data_param { source: \"",
          source, "\" backend: LMDB batch_size: ", batch,
          " } transform_param { scale: 0.01 } } layer { name: \"ip\" type: \"InnerProduct\" "
          "bottom: \"data\" top: \"ip\" inner_product_param { num_output: 3 weight_filler { type: "
          "\"xavier\" } } } layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" "
          "bottom: \"label\" top: \"loss\" } }\nbase_lr: 0.1 random_seed: 3 "
          "max_epoch: 4 test_epoch: true test_interval_epoch: 0.5 snapshot_epoch: 1 "
          "snapshot_prefix: \"",
          folder.file("net"), "\" ", more),
      "solver.prototxt");
}

class EpochRuns : public testing::TestWithParam<std::tuple<Device, int>> {};

// An epoch is 2.5 updates, and 4 are 10. On a GPU, display 0 lets several updates run in one CUDA
// graph.
TEST_P(EpochRuns, TestAndKeepAndSlowDownWhenEpochsSay) {
  const auto [device, display] = GetParam();
  if (device == Device::gpu && gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  const Folder folder;
  const std::string source = image_database(folder, kRecords, {1, 2, 2},
                                            [](int64_t i) { return static_cast<int>(i % 3); });
  const SolverFile file =
      solver_of(folder, source, kBatch,
                cat("lr_policy: \"step\" gamma: 0.5 stepsize_epoch: 1 display: ", display));
  const auto run = [&](const SolverFile& file, const std::string& snapshot, Dates* dates) {
    Context context(device);
    context.set_log(silent_log());
    SolverOptions options;
    options.readers = {dates};
    options.snapshot = snapshot;
    Solver solver(context, file, options);
    solver.solve();
    EXPECT_EQ(solver.parameter().max_iter(), dates->max_iter);
    EXPECT_EQ(solver.iteration(), dates->max_iter);
    return parameters_of(solver);
  };
  Dates whole, resumed;
  const std::vector<float> weights = run(file, "", &whole);
  EXPECT_EQ(whole.max_iter, 10);
  EXPECT_EQ(whole.last.max_iter, 10);
  EXPECT_EQ(whole.tests, (std::vector<int64_t>{0, 2, 3, 4, 5, 7, 8, 9, 10}));
  EXPECT_EQ(whole.snapshots, (std::vector<int64_t>{3, 5, 8, 10}));
  if (display == 1) {
    // Steps at 2.5, 5 and 7.5 iterations: a rounded length would give 3, 6 and 9.
    const double r = 0.1f;
    EXPECT_EQ(whole.rates,
              (std::vector<double>{r, r, r, r / 2, r / 2, r / 4, r / 4, r / 4, r / 8, r / 8}));
  }
  EXPECT_EQ(run(file, folder.file("net_iter_5.solverstate"), &resumed), weights);
  EXPECT_EQ(resumed.tests, (std::vector<int64_t>{5, 7, 8, 9, 10}));
  EXPECT_EQ(resumed.snapshots, (std::vector<int64_t>{8, 10}));

  // With half the batch the iterations before the snapshot count by the new one: an epoch is 5
  // updates.
  Dates smaller;
  run(solver_of(folder, source, kBatch / 2,
                "lr_policy: \"multistep\" gamma: 0.5 stepvalue_epoch: [0.5, 3] display: 1"),
      folder.file("net_iter_3.solverstate"), &smaller);
  EXPECT_EQ(smaller.max_iter, 20);
  EXPECT_EQ(smaller.snapshots, (std::vector<int64_t>{5, 10, 15, 20}));
}

// Two ranks read twice as much: an epoch is 1.25 updates. If they share batches it is 2.5.
TEST(EpochFields, CountTheSamplesOfAllRanks) {
  const Folder folder;
  const std::string source = image_database(folder, kRecords, {1, 2, 2},
                                            [](int64_t i) { return static_cast<int>(i % 3); });
  const SolverFile file = solver_of(folder, source, kBatch, "lr_policy: \"fixed\"");
  for (const bool divides : {false, true}) {
    SCOPED_TRACE(divides);
    Dates dates;
    ThreadRanks(2, divides).run([&](Communicator& world) {
      Context context(Device::cpu);
      context.set_log(silent_log());
      context.set_world(&world);
      SolverOptions options;
      if (world.rank == 0) options.readers = {&dates};
      Solver solver(context, file, options);
      solver.solve();
      EXPECT_EQ(solver.iteration(), divides ? 10 : 5);
    });
    EXPECT_EQ(dates.max_iter, divides ? 10 : 5);
    EXPECT_EQ(dates.snapshots,
              divides ? (std::vector<int64_t>{3, 5, 8, 10}) : (std::vector<int64_t>{2, 3, 4, 5}));
  }
}

INSTANTIATE_TEST_SUITE_P(All, EpochRuns,
                         testing::Combine(testing::Values(Device::cpu, Device::gpu),
                                          testing::Values(0, 1)));

TEST(EpochRuns, AgreeWithTheEpochsOfTheLog) {
  const Folder folder;
  const std::string source = image_database(folder, kRecords, {1, 2, 2},
                                            [](int64_t i) { return static_cast<int>(i % 3); });
  Context context(Device::cpu);
  Lines lines;
  context.set_log(lines);
  Dates dates;
  SolverOptions options;
  options.readers = {&dates};
  Solver solver(context, solver_of(folder, source, kBatch, "lr_policy: \"cosine\" epoch_log: true"),
                options);
  EXPECT_EQ(solver.rate(), 0.1f);
  EXPECT_TRUE(
      lines.has("An epoch has 10 records, an iteration reads 4: max_epoch 4 is max_iter 10, "
                "test_interval_epoch 0.5 is test_interval 2, snapshot_epoch 1 is snapshot 3"));
  solver.solve();
  EXPECT_EQ(dates.epochs, (std::vector<int64_t>{4, 4, 4, 4}));
  EXPECT_NEAR(solver.rate(), 0, 1e-9);
}

TEST(EpochRuns, NeedASourceThatKnowsItsSize) {
  Context context(Device::cpu);
  expect_part(
      error_of([&] { Solver(context, solver_file("display: 1\nmax_epoch: 5")); }),
      "solver.prototxt:19:1: max_epoch counts epochs of the training data, but no source of "
      "the training net knows how many records it has");
}

}  // namespace epoch_fields_test
}  // namespace crema::tests
