// test_epoch: a test is one exact pass over the data, and its results are means over records.
#include <gtest/gtest.h>

#include "data/databases/hdf5/hdf5_writer.h"
#include "fixtures.h"
#include "solver/test/test_scores.h"

namespace crema::tests {
namespace test_epoch_test {

constexpr int kRecords = 23, kBatch = 7, kBatches = 4;  // the last batch has 2

int label_of(int64_t record) { return static_cast<int>(record * record % 3); }
float value_of(int64_t record, int64_t pixel) {
  return static_cast<float>((record * 37 + pixel * 11) % 256);
}

// The records in each of the sources, as reported by the layer.
std::string database(const Folder& folder, DataParameter::DB backend) {
  const std::string path = folder.file("db");
  const std::unique_ptr<DatabaseWriter> writer = create_database(path, backend);
  for (int64_t i = 0; i < kRecords; ++i) {
    Datum datum;
    datum.set_channels(1);
    datum.set_height(2);
    datum.set_width(2);
    for (int64_t k = 0; k < 4; ++k)
      datum.mutable_data()->push_back(static_cast<char>(value_of(i, k)));
    datum.set_label(label_of(i));
    writer->put(numbered_key(i, 4), datum);
  }
  writer->finish();
  return cat("type: \"Data\" transform_param { scale: 0.01 } data_param { source: \"", path,
             "\" backend: ", backend == DataParameter::LMDB ? "LMDB" : "LEVELDB", " batch_size: ");
}

std::string lmdb(const Folder& folder) { return database(folder, DataParameter::LMDB); }

std::string hdf5(const Folder& folder) {
  std::vector<float> data, labels;
  for (int64_t i = 0; i < kRecords; ++i) {
    labels.push_back(static_cast<float>(label_of(i)));
    for (int64_t k = 0; k < 4; ++k) data.push_back(0.01f * value_of(i, k));
  }
  Hdf5Writer file(folder.file("data.h5"));
  file.floats("data", {kRecords, 1, 2, 2}, data.data());
  file.floats("label", {kRecords}, labels.data());
  file.commit();
  folder.write("list.txt", folder.file("data.h5") + "\n");
  return cat("type: \"HDF5Data\" hdf5_data_param { source: \"", folder.file("list.txt"),
             "\" batch_size: ");
}

[[maybe_unused]] std::string images(const Folder& folder) {
  std::string list;
  for (int64_t i = 0; i < kRecords; ++i) {
    std::string pgm = "P5\n2 2\n255\n";
    for (int64_t k = 0; k < 4; ++k) pgm.push_back(static_cast<char>(value_of(i, k)));
    folder.write(cat(i, ".pgm"), pgm);
    list += cat(folder.file(cat(i, ".pgm")), " ", label_of(i), "\n");
  }
  folder.write("list.txt", list);
  return cat(
      "type: \"ImageData\" transform_param { scale: 0.01 } image_data_param { is_color: "
      "false source: \"",
      folder.file("list.txt"), "\" batch_size: ");
}

struct Source {
  const char* name;
  std::string (*make)(const Folder& folder);
};

const Source kSources[] = {
    {"Lmdb", lmdb},
#ifdef CREMA_LEVELDB
    {"Leveldb", [](const Folder& folder) { return database(folder, DataParameter::LEVELDB); }},
#endif
    {"Hdf5", hdf5},
#ifdef CREMA_OPENCV
    {"Images", images},
#endif
};

void PrintTo(const Source& source, std::ostream* out) { *out << source.name; }

// A test net with this batch; the label's loss and accuracy, and a dropout that a test leaves out.
std::string net_text(const std::string& source, int batch) {
  const auto data = [&](const char* phase, int size) {
    return cat("layer { name: \"data\" top: \"data\" top: \"label\" include { phase: ", phase,
               " } ", source, size, " } }\n");
  };
  return data("TRAIN", 3) + data("TEST", batch) +
         "layer { name: \"conv\" type: \"Convolution\" bottom: \"data\" top: \"conv\" "
         "convolution_param { num_output: 4 kernel_size: 2 weight_filler { type: \"gaussian\" std: "
         "1 } } }\nlayer { name: \"relu\" type: \"ReLU\" bottom: \"conv\" top: \"conv\" }\n"
         "layer { name: \"drop\" type: \"Dropout\" bottom: \"conv\" top: \"conv\" }\n"
         "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"conv\" top: \"ip\" "
         "inner_product_param { num_output: 3 weight_filler { type: \"gaussian\" std: 1 } } }\n"
         "layer { name: \"acc\" type: \"Accuracy\" bottom: \"ip\" bottom: \"label\" top: \"acc\" "
         "}\n"
         "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\" top: "
         "\"loss\" }\n";
}

SolverFile solver_of(const std::string& net, const std::string& more) {
  return parse_solver_text(
      cat("net_param {\n", net,
          "}\nbase_lr: 0.1 lr_policy: \"fixed\" "
          "random_seed: 3 max_iter: 4 test_interval: 2 snapshot_after_train: false\n",
          more),
      "solver.prototxt");
}

class Tests : public EventReader {
 public:
  void read(const Event& event) override {
    if (const auto* test = std::get_if<event::TestResult>(&event)) results.push_back(*test);
    if (const auto* test = std::get_if<event::TestBegin>(&event)) batches = test->batches;
    if (const auto* test = std::get_if<event::TestBatch>(&event)) done = test->done;
  }
  double value(size_t test, size_t output) const {
    return results.at(test).outputs.at(output).value;
  }
  std::vector<event::TestResult> results;
  int batches = 0, done = 0;
};

class TestEpoch : public testing::TestWithParam<std::tuple<Source, Device>> {};

TEST_P(TestEpoch, GivesTheMeansOfBatchesOfOne) {
  const auto& [source, device] = GetParam();
  if (device == Device::gpu && gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  const Folder folder;
  const std::string text = source.make(folder);
  const auto run = [&, device = device](int batch, const std::string& tests) {
    Context context(device);
    context.set_log(silent_log());
    Tests reader;
    SolverOptions options;
    options.readers = {&reader};
    Solver solver(context, solver_of(net_text(text, batch), tests + " test_compute_loss: true"),
                  options);
    solver.solve();
    solver.test_all();
    return reader;
  };
  const Tests exact = run(kBatch, "test_epoch: true"),
              single = run(1, cat("test_iter: ", kRecords)), of_one = run(1, "test_epoch: true"),
              all = run(100, "test_epoch: true");
  EXPECT_EQ(exact.batches, kBatches);
  EXPECT_EQ(exact.done, kBatches);
  EXPECT_EQ(of_one.batches, kRecords);
  EXPECT_EQ(all.batches, 1);
  ASSERT_EQ(exact.results.size(), 4u);
  for (const Tests* tests : {&exact, &of_one, &all}) {
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(tests->value(i, 0), single.value(i, 0), 1e-6);
      EXPECT_NEAR(tests->value(i, 1), single.value(i, 1), 1e-6 * single.value(i, 1));
      EXPECT_NEAR(*tests->results[i].loss, *single.results[i].loss, 1e-6 * single.value(i, 1));
    }
  }
  // Each begins with the first record.
  EXPECT_EQ(exact.value(2, 1), exact.value(3, 1));
}

INSTANTIATE_TEST_SUITE_P(All, TestEpoch,
                         testing::Combine(testing::ValuesIn(kSources),
                                          testing::Values(Device::cpu, Device::gpu)));

// What follows the batch is averaged for each place over the batches that have it.
TEST(TestEpochOutputs, CountEachBatchWithItsRecords) {
  const Folder folder;
  const std::string net = cat(net_text(lmdb(folder), kBatch),
                              "layer { name: \"split\" type: \"Power\" bottom: \"label\" top: "
                              "\"shown\" }\n");
  Context context(Device::cpu);
  context.set_log(silent_log());
  Tests reader;
  SolverOptions options;
  options.readers = {&reader};
  Solver solver(context, solver_of(net, "test_epoch: true"), options);
  solver.test_all();
  std::vector<float> shown;
  for (const OutputValue& output : reader.results.at(0).outputs) {
    if (output.name == "shown") shown.push_back(output.value);
  }
  ASSERT_EQ(shown.size(), static_cast<size_t>(kBatch));
  for (int64_t i = 0; i < kBatch; ++i) {
    double sum = 0, count = 0;
    for (int64_t record = i; record < kRecords; record += kBatch) {
      const double in_batch = record + kBatch - i <= kRecords ? kBatch : kRecords % kBatch;
      sum += in_batch * label_of(record);
      count += in_batch;
    }
    EXPECT_NEAR(shown[i], sum / count, 1e-6) << i;
  }
}

TEST(TestEpochOutputs, BeginAnewAfterAnInterruption) {
  const Folder folder;
  Context context(Device::cpu);
  context.set_log(silent_log());
  Tests reader;
  SolverOptions options;
  options.readers = {&reader};
  int left = -1;
  options.action = [&] { return left-- == 0 ? Action::stop : Action::none; };
  Solver solver(context, solver_of(net_text(lmdb(folder), kBatch), "test_epoch: true"), options);
  solver.test_all();
  left = 2;  // after two batches
  solver.test_all();
  EXPECT_TRUE(solver.stopped());
  ASSERT_EQ(reader.results.size(), 1u);
  solver.step(0);
  left = -1;
  solver.test_all();
  ASSERT_EQ(reader.results.size(), 2u);
  EXPECT_EQ(reader.value(0, 0), reader.value(1, 0));
  EXPECT_EQ(reader.value(0, 1), reader.value(1, 1));
}

// The plans for both sizes stay: neither a test nor a training step creates a layer again.
TEST(TestEpochOutputs, ComeFromPlansThatStay) {
  const Folder folder;
  Context context(Device::cpu);
  Lines lines;
  context.set_log(lines);
  Solver solver(context, solver_of(net_text(lmdb(folder), kBatch), "test_epoch: true"));
  Net& net = *solver.test_nets()[0];
  const auto memory_of = [&](uint64_t pass) {
    net.forward(pass);
    return std::pair(net.blob("data").shape()[0], net.blob("loss").raw());
  };
  const auto full = memory_of(0), last = memory_of(kBatches - 1);
  EXPECT_EQ(full.first, kBatch);
  EXPECT_EQ(last.first, kRecords % kBatch);
  const uint64_t generation = net.generation();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(memory_of(kBatches + i), full);
    EXPECT_EQ(memory_of(2 * kBatches - 1), last);
  }
  EXPECT_GT(net.generation(), generation);
  EXPECT_EQ(std::count(lines.all.begin(), lines.all.end(), "Creating layer conv"), 2)
      << "of the training net and of the test net";
}

// A recurrent layer continues from batch to batch, but no test continues from the previous one.
TEST(TestEpochOutputs, DoNotDependOnTheTestBefore) {
  const Folder folder;
  const std::string net =
      net_text(lmdb(folder), kBatch) +
      R"(layer { name: "x" type: "Reshape" bottom: "data" top: "x" include { phase: TEST }
           reshape_param { shape { dim: 0 dim: 1 dim: 4 } } }
         layer { name: "one" type: "Power" bottom: "label" top: "one" include { phase: TEST }
           power_param { scale: 0 shift: 1 } }
         layer { name: "cont" type: "Reshape" bottom: "one" top: "cont" include { phase: TEST }
           reshape_param { shape { dim: 0 dim: 1 } } }
         layer { name: "lstm" type: "LSTM" bottom: "x" bottom: "cont" top: "y" include { phase: TEST }
           recurrent_param { num_output: 2 weight_filler { type: "gaussian" std: 0.5 } } }
         layer { name: "sum" type: "Reduction" bottom: "y" top: "sum" include { phase: TEST } })";
  Context context(Device::cpu);
  context.set_log(silent_log());
  Tests reader;
  SolverOptions options;
  options.readers = {&reader};
  Solver solver(context, solver_of(net, "test_epoch: true"), options);
  for (int i = 0; i < 3; ++i) solver.test_all();
  ASSERT_EQ(reader.results.at(0).outputs.at(2).name, "sum");
  EXPECT_NE(reader.value(0, 2), 0);
  EXPECT_EQ(reader.value(1, 2), reader.value(0, 2));
  EXPECT_EQ(reader.value(2, 2), reader.value(0, 2));
}

struct Refused {
  const char *test_source, *solver, *message;
};

void PrintTo(const Refused& row, std::ostream* out) { *out << row.message; }

class TestEpochRefused : public testing::TestWithParam<Refused> {};

TEST_P(TestEpochRefused, WithItsPosition) {
  const Refused& row = GetParam();
  const Folder folder;
  const std::string source = lmdb(folder);
  std::string text = row.test_source;
  for (size_t at; (at = text.find("LMDB(")) != text.npos;) {
    const size_t end = text.find(')', at);
    text.replace(at, end + 1 - at, source + text.substr(at + 5, end - at - 5) + " }");
  }
  const std::string small = image_database(folder, 5, {1, 2, 2}, [](int64_t) { return 0; });
  for (size_t at; (at = text.find("SMALL")) != text.npos;) text.replace(at, 5, small);
  const std::string net =
      cat("layer { name: \"data\" top: \"data\" top: \"label\" include { phase: TRAIN } ", source,
          "3 } }\n", text,
          "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"data\" top: \"ip\" "
          "inner_product_param { num_output: 3 weight_filler { type: \"xavier\" } } }\n"
          "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\" top: "
          "\"loss\" }\n");
  Context context(Device::cpu);
  context.set_log(silent_log());
  expect_part(error_of([&] {
                Solver(context, parse_solver_text(cat("test_epoch: true\n", row.solver,
                                                      " base_lr: 0.1 lr_policy: \"fixed\"\n"
                                                      "net_param {\n",
                                                      net, "}"),
                                                  "solver.prototxt"));
              }),
              row.message);
}

constexpr const char* kTest =
    "layer { name: \"test\" top: \"data\" top: \"label\" include { phase: TEST } LMDB(7) }";
constexpr const char* kEach = "test_interval: 2";

INSTANTIATE_TEST_SUITE_P(
    All, TestEpochRefused,
    testing::Values(
        Refused{kTest, "test_interval: 2 test_iter: 3",
                "solver.prototxt:1:1: test_epoch is true, but test_iter is given "
                "(solver.prototxt:2:18)"},
        Refused{kTest, "", "solver.prototxt:1:1: there are test nets, but test_interval is 0"},
        Refused{
            "layer { name: \"dummy\" type: \"DummyData\" top: \"data\" top: \"label\" include { "
            "phase: TEST } dummy_data_param { shape { dim: 2 dim: 4 } shape { dim: 2 } } }",
            kEach, "solver.prototxt:1:1: test_epoch, test net (#0): net \"\" has no epochs"},
        Refused{
            "layer { name: \"m\" type: \"MemoryData\" top: \"data\" top: \"label\" include { "
            "phase: TEST } memory_data_param { batch_size: 2 channels: 1 height: 2 width: 2 } }",
            kEach,
            "solver.prototxt:1:1: test_epoch, test net (#0): layer \"m\" (MemoryData) has no "
            "epochs: there is no last record; give the number of batches"},
        Refused{
            "layer { name: \"a\" top: \"data\" top: \"label\" include { phase: TEST } LMDB(7) }\n"
            "layer { name: \"b\" type: \"Data\" top: \"other\" include { phase: TEST } data_param "
            "{ backend: LMDB source: \"SMALL\" batch_size: 7 } }\n",
            kEach, "layer \"a\" (Data) has 23 records, but layer \"b\" (Data) has 5: sources"},
        Refused{
            "layer { name: \"a\" top: \"data\" top: \"label\" include { phase: TEST } LMDB(7) }\n"
            "layer { name: \"b\" top: \"other\" include { phase: TEST } LMDB(5) }\n",
            kEach,
            "layer \"a\" (Data) reads its 23 records in 4 batches, but layer \"b\" (Data) in 5: "
            "give both the same batch_size"},
        Refused{
            "layer { name: \"a\" top: \"all\" top: \"label\" include { phase: TEST } LMDB(7) }\n"
            "layer { name: \"r\" type: \"Reshape\" bottom: \"all\" top: \"data\" include { phase: "
            "TEST } reshape_param { shape { dim: 7 dim: 4 } } }\n",
            kEach,
            "solver.prototxt:1:1: test_epoch, test net (#0): the last batch of an epoch has 2 "
            "records, others 7: solver.prototxt:6:1: layer \"r\": "}));

TEST(TestEpochNets, AreAsManyAsAreNamed) {
  const Folder folder;
  const std::string net = net_text(lmdb(folder), kBatch);
  for (const auto& [more, count] :
       {std::pair<std::string, size_t>{"", 1},
        {"test_state { stage: \"a\" } test_state { stage: \"b\" } test_state {}", 3},
        {cat("test_net_param {\n", net, "}"), 1},
        {cat("test_net_param {\n", net, "} test_net_param {\n", net, "}"), 2}}) {
    Context context(Device::cpu);
    context.set_log(silent_log());
    EXPECT_EQ(Solver(context, solver_of(net, "test_epoch: true " + more)).test_nets().size(), count)
        << more;
  }
}

}  // namespace test_epoch_test
}  // namespace crema::tests
