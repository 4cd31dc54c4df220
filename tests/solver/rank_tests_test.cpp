// Tests whose batches several ranks share: each rank has the results of one that runs them all,
// with the same bits on every rank.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "data/databases/hdf5/hdf5_writer.h"
#include "fixtures.h"
#include "ranks.h"
#include "solver/sequence_net.h"
#include "solver/test/class_metrics.h"

namespace crema::tests {
namespace rank_tests_test {

constexpr int kRecords = 61;
constexpr const char* kMetrics = "confusion,per_class,top1,top2,auc,map,f1,iou";

// The events that one rank received.
class Told : public EventReader {
 public:
  void read(const Event& event) override {
    if (const auto* test = std::get_if<event::TestResult>(&event)) results.push_back(*test);
    if (const auto* found = std::get_if<event::Confusion>(&event)) confusions.push_back(*found);
    if (const auto* found = std::get_if<event::Pictures>(&event)) pictures.push_back(*found);
    if (std::get_if<event::TestBatch>(&event)) ++batches;
    if (std::get_if<event::TestInterrupted>(&event)) ++interrupted;
  }
  std::vector<event::TestResult> results;
  std::vector<event::Confusion> confusions;
  std::vector<event::Pictures> pictures;
  int batches = 0, interrupted = 0;
  std::vector<float> parameters;  // after the tests
  bool stopped = false;
};

struct Training {
  std::string net, solver;
  SolverOptions options = {};
  // Called before the tests.
  std::function<void(Net&)> prepare = [](Net&) {};
};

// Two tests, so that the second must begin where the first ends, by ranks that are threads, or one
// rank without others.
std::vector<Told> tests_of(const Training& training, int ranks) {
  std::vector<Told> all(ranks);
  const auto run = [&](Communicator* world) {
    Told& told = all[world ? world->rank : 0];
    Context context(Device::cpu);
    context.set_world(world);
    SolverOptions options = training.options;
    options.readers = {&told};
    Solver solver(context,
                  solver_file("random_seed: 4 test_interval: 100 max_iter: 9 " + training.solver,
                              training.net),
                  options);
    training.prepare(solver.net());
    for (int test = 0; test < 2; ++test) solver.test_all();
    told.parameters = parameters_of(solver);
    told.stopped = solver.stopped();
  };
  if (ranks == 1) {
    run(nullptr);
  } else {
    ThreadRanks(ranks, false).run([&](Communicator& world) { run(&world); });
  }
  return all;
}

bool same(double one, double other) {
  return one == other || (std::isnan(one) && std::isnan(other));
}

void expect_results(const Told& told, const Told& expected, double tolerance) {
  ASSERT_EQ(told.parameters.size(), expected.parameters.size());
  for (size_t i = 0; i < expected.parameters.size(); ++i)
    EXPECT_FLOAT_EQ(told.parameters[i], expected.parameters[i]);
  ASSERT_EQ(told.results.size(), expected.results.size());
  for (size_t test = 0; test < expected.results.size(); ++test) {
    SCOPED_TRACE(cat("test ", test));
    const event::TestResult &result = told.results[test], &wanted = expected.results[test];
    const auto near = [&](double value, double right) {
      return same(value, right) || std::abs(value - right) <= tolerance * std::abs(right);
    };
    ASSERT_EQ(result.loss.has_value(), wanted.loss.has_value());
    if (wanted.loss) {
      EXPECT_TRUE(near(*result.loss, *wanted.loss)) << *result.loss << " " << *wanted.loss;
    }
    ASSERT_EQ(result.outputs.size(), wanted.outputs.size());
    for (size_t i = 0; i < wanted.outputs.size(); ++i) {
      const OutputValue &value = result.outputs[i], &right = wanted.outputs[i];
      EXPECT_EQ(value.name, right.name);
      EXPECT_EQ(value.loss_weight, right.loss_weight);
      EXPECT_TRUE(near(value.value, right.value))
          << value.name << " is " << value.value << ", but with one rank " << right.value;
    }
    ASSERT_EQ(result.classes.size(), wanted.classes.size());
    for (size_t i = 0; i < wanted.classes.size(); ++i) {
      EXPECT_EQ(result.classes[i].label, wanted.classes[i].label);
      EXPECT_EQ(result.classes[i].precision, wanted.classes[i].precision);
      EXPECT_EQ(result.classes[i].found, wanted.classes[i].found);
    }
  }
}

// Compares several ranks with one, and returns their events. The sums of a rank are added up before
// those of the next, so means may differ in the last digits.
std::vector<Told> expect_as_one(const Training& training, int ranks, double tolerance = 1e-6) {
  const std::vector<Told> one = tests_of(training, 1), all = tests_of(training, ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    SCOPED_TRACE(cat("rank ", rank));
    expect_results(all[rank], one[0], tolerance);
    expect_results(all[rank], all[0], 0);
    EXPECT_EQ(all[rank].parameters, all[0].parameters);
  }
  EXPECT_EQ(all[0].confusions.size(), one[0].confusions.size());
  for (size_t i = 0; i < all[0].confusions.size(); ++i)
    EXPECT_EQ(all[0].confusions[i].counts, one[0].confusions[i].counts);
  return all;
}

int batches_of_all(const std::vector<Told>& all) {
  int batches = 0;
  for (const Told& told : all) batches += told.batches;
  return batches;
}

// Images whose labels have no pattern, read in batches of this size.
std::string classifier(const Folder& folder, int batch) {
  const std::string path = image_database(folder, kRecords, {3, 2, 2}, [](int64_t i) {
    return static_cast<int>(Random{7, 7}.word(i) % 4);
  });
  return cat(R"(
    layer { name: "data" type: "Data" top: "data" top: "label" transform_param { scale: 0.004 }
      data_param { source: ")",
             path, "\" backend: LMDB batch_size: ", batch, R"( } }
    layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 4
      weight_filler { type: "gaussian" std: 1 } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
    layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
      include { phase: TEST } }
  )");
}

class RankTests : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Ranks, RankTests, testing::Values(2, 3, 5));

// More batches than the data have, and a number that no number of ranks divides.
TEST_P(RankTests, HaveTheMetricsOfOneRank) {
  const Folder folder;
  Training training{classifier(folder, 4), "test_iter: 17 test_compute_loss: true"};
  training.options.metrics = parse_class_metrics(kMetrics);
  const std::vector<Told> all = expect_as_one(training, GetParam());
  EXPECT_EQ(batches_of_all(all), 2 * 17);
  const std::vector<Told> one = tests_of(training, 1);
  for (const size_t test : {0, 1}) {
    const std::vector<OutputValue>& outputs = all[0].results[test].outputs;
    ASSERT_EQ(outputs.size(), 2u + 10u);
    EXPECT_TRUE(std::isfinite(outputs[0].value));
    for (size_t i = 2; i < outputs.size(); ++i)  // from integers, and from lists in one order
      EXPECT_TRUE(same(outputs[i].value, one[0].results[test].outputs[i].value)) << outputs[i].name;
  }
  EXPECT_NE(all[0].results[0].loss, all[0].results[1].loss) << "the second has other batches";
  ASSERT_EQ(all[0].confusions.size(), 2u);
  for (int rank = 1; rank < GetParam(); ++rank)
    EXPECT_TRUE(all[rank].confusions.empty()) << "only rank 0 writes its file";
}

TEST_P(RankTests, HaveTheConfusionsOfOneRankUnasked) {
  const Folder folder;
  Training training{classifier(folder, 4), "test_iter: 17"};
  training.options.confusions = true;
  const std::vector<Told> all = expect_as_one(training, GetParam());
  ASSERT_EQ(all[0].confusions.size(), 2u);
  int64_t records = 0;
  for (const int64_t count : all[0].confusions[1].counts) records += count;
  EXPECT_EQ(records, 17 * 4);
  EXPECT_EQ(all[0].results[0].outputs.size(), 2u) << "no output of the tests is added";
}

// Four batches, of which the last has fewer records: some of five ranks have none.
TEST_P(RankTests, CoverAnEpochOnce) {
  const Folder folder;
  Training training{classifier(folder, 19) + R"(
    layer { name: "shown" type: "Power" bottom: "label" top: "shown" include { phase: TEST } })",
                    "test_epoch: true test_compute_loss: true"};
  training.options.metrics = parse_class_metrics(kMetrics);
  const std::vector<Told> all = expect_as_one(training, GetParam());
  EXPECT_EQ(batches_of_all(all), 2 * 4);
  int64_t records = 0;
  for (const int64_t count : all[0].confusions.at(1).counts) records += count;
  EXPECT_EQ(records, kRecords);
  const auto shown =
      std::count_if(all[0].results[0].outputs.begin(), all[0].results[0].outputs.end(),
                    [](const OutputValue& output) { return output.name == "shown"; });
  EXPECT_EQ(shown, 19) << "each place of a batch has a mean";
}

// All ranks judge the tests alike, those without batches, too.
TEST_P(RankTests, StopTogether) {
  const Folder folder;
  const Training training{
      classifier(folder, 19),
      "test_epoch: true early_stop { tests: 1 watch { output: \"accuracy\" } }"};
  for (const Told& told : expect_as_one(training, GetParam())) {
    EXPECT_EQ(told.results.size(), 2u);
    EXPECT_TRUE(told.stopped) << "the second test is not better";
  }
}

void expect_pictures(const Told& told, const Told& expected) {
  ASSERT_EQ(told.pictures.size(), expected.pictures.size());
  for (size_t i = 0; i < told.pictures.size(); ++i) {
    const event::Pictures &shown = told.pictures[i], &wanted = expected.pictures[i];
    EXPECT_EQ(shown.title, wanted.title);
    ASSERT_EQ(shown.pictures.size(), wanted.pictures.size());
    for (size_t k = 0; k < wanted.pictures.size(); ++k) {
      EXPECT_EQ(shown.pictures[k].caption, wanted.pictures[k].caption);
      EXPECT_EQ(shown.pictures[k].bytes, wanted.pictures[k].bytes);
      EXPECT_EQ(shown.pictures[k].width, wanted.pictures[k].width);
    }
  }
}

struct PicturesRow {
  const char* name;
  const char* solver;
  int batch;
  bool equally_sure;
};

// More mistakes than are shown, and more samples than records.
TEST_P(RankTests, ShowTheSurestMistakesOfAll) {
  const PicturesRow rows[] = {
      {"as many as there are", "test_iter: 15", 4, false},
      {"more than an epoch", "test_iter: 23", 4, false},
      {"whole epochs", "test_epoch: true", 7, false},
      {"equally sure: those that come first", "test_iter: 15", 4, true},
      {"equally sure, whole epochs", "test_epoch: true", 7, true},
  };
  for (const PicturesRow& row : rows) {
    SCOPED_TRACE(row.name);
    const Folder folder;
    Training training{classifier(folder, row.batch), row.solver};
    training.options.pictures = true;
    if (row.equally_sure) {
      training.prepare = [](Net& net) {
        const float bias[] = {0, 3, 0, 0};
        zero(net.context(), net.parameters().at(0).data);
        from_floats(net.context(), bias, net.parameters().at(1).data);
        net.parameters_changed();
      };
    }
    const std::vector<Told> one = tests_of(training, 1), all = expect_as_one(training, GetParam());
    ASSERT_EQ(one[0].pictures.size(), 4u);
    EXPECT_EQ(one[0].pictures[1].pictures.size(), 25u);
    expect_pictures(all[0], one[0]);
    for (int rank = 1; rank < GetParam(); ++rank) EXPECT_TRUE(all[rank].pictures.empty());
  }
}

// Batches of one image each with detections of three classes. Scores come several times, so that
// the order of the batches counts.
std::string detector(const Folder& folder, int64_t batches) {
  constexpr int64_t kDetections = 6, kObjects = 3;
  const Random random{3, 3};
  std::vector<float> detections, objects;
  for (int64_t image = 0; image < batches; ++image) {
    for (int64_t i = 0; i < kObjects; ++i) {
      const auto left = static_cast<float>(i) / 3;
      // (image, class, -, -, box, difficult)
      for (const float value :
           {0.f, static_cast<float>(1 + (image + i) % 3), 0.f, left, 0.f, left + 0.3f, 0.5f, 0.f})
        objects.push_back(value);
    }
    for (int64_t i = 0; i < kDetections; ++i) {
      const uint64_t drawn = random.word(image * kDetections + i);
      const float left = static_cast<float>(i % 3) / 3 + (drawn % 5 == 0 ? 0.2f : 0.f);
      // (image, class, score, box)
      for (const float value :
           {0.f, static_cast<float>(1 + (image + i + (drawn % 7 == 0)) % 3),
            static_cast<float>(1 + drawn / 16 % 4) / 5, left, 0.f, left + 0.3f, 0.5f})
        detections.push_back(value);
    }
  }
  Hdf5Writer file(folder.file("boxes.h5"));
  file.floats("detections", {batches, 1, kDetections, 7}, detections.data());
  file.floats("objects", {batches, 1, kObjects, 8}, objects.data());
  file.commit();
  folder.write("boxes.txt", folder.file("boxes.h5") + "\n");
  return cat(R"(
    layer { name: "data" type: "DummyData" top: "x" top: "y" include { phase: TRAIN }
      dummy_data_param { shape { dim: 2 dim: 3 } data_filler { type: "gaussian" std: 1 } } }
    layer { name: "loss" type: "EuclideanLoss" bottom: "x" bottom: "y" top: "loss"
      include { phase: TRAIN } }
    layer { name: "boxes" type: "HDF5Data" top: "detections" top: "objects" include { phase: TEST }
      hdf5_data_param { batch_size: 1 source: ")",
             folder.file("boxes.txt"), R"(" } }
    layer { name: "found" type: "DetectionEvaluate" bottom: "detections" bottom: "objects"
      top: "found" include { phase: TEST } detection_evaluate_param { num_classes: 4 } }
  )");
}

TEST_P(RankTests, HaveTheAveragePrecisionsOfOneRank) {
  const Folder folder;
  for (const char* version : {"11point", "MaxIntegral", "Integral"}) {
    SCOPED_TRACE(version);
    const Training training{
        detector(folder, 11),
        cat("test_iter: 11 eval_type: \"detection\" ap_version: \"", version, "\"")};
    const std::vector<Told> all = expect_as_one(training, GetParam(), 0);
    EXPECT_EQ(batches_of_all(all), 2 * 11);
    ASSERT_EQ(all[0].results[0].classes.size(), 3u);
    for (const event::ClassPrecision& of_class : all[0].results[0].classes) {
      EXPECT_GT(of_class.precision, 0);
      EXPECT_LT(of_class.precision, 1);
    }
  }
}

constexpr const char* kMeasuring = R"(
  layer { name: "data" type: "DummyData" top: "x" top: "y" dummy_data_param { shape { dim: 6 dim: 4 }
    data_filler { type: "gaussian" std: 1 } } }
  layer { name: "bn" type: "BatchNorm" bottom: "x" top: "n" batch_norm_param { use_global_stats: false } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "n" bottom: "y" top: "loss" }
)";

TEST_P(RankTests, EachRunAllBatchesThatFollowFromOneAnother) {
  for (const char* net : {kSequence, kMeasuring}) {
    const Training training{net, "test_iter: 7"};
    for (const Told& told : expect_as_one(training, GetParam(), 0)) EXPECT_EQ(told.batches, 2 * 7);
  }
}

// The ranks are at different batches, so they cannot agree there.
TEST_P(RankTests, AreNotInterrupted) {
  Training training{kNet, "test_iter: 6"};
  training.options.action = [asked = false]() mutable {  // once for each rank
    return std::exchange(asked, true) ? Action::none : Action::stop;
  };
  const Told one = tests_of(training, 1)[0];
  EXPECT_EQ(one.interrupted, 1);
  EXPECT_EQ(one.batches, 6);  // of the second test, which is a call of its own
  const std::vector<Told> all = tests_of(training, GetParam());
  EXPECT_EQ(batches_of_all(all), 2 * 6);
  for (const Told& told : all) {
    EXPECT_EQ(told.interrupted, 0);
    EXPECT_FALSE(told.stopped);
  }
}

}  // namespace rank_tests_test
}  // namespace crema::tests
