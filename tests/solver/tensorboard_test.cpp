// TensorboardReader: a recorded stream of events, and the files that it gives.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <map>

#include "event_file.h"
#include "solver/events/run_identity.h"
#include "solver/readers/pictures_reader.h"
#include "solver/readers/tensorboard_reader.h"

namespace crema::tests {
namespace tensorboard_test {

// "STEP TAG VALUE" of each scalar, "STEP START" of each beginning.
std::vector<std::string> lines_of(const std::vector<tensorboard::Event>& records) {
  std::vector<std::string> lines;
  for (const tensorboard::Event& record : records) {
    if (record.has_session_log()) {
      EXPECT_EQ(record.session_log().status(), tensorboard::SessionLog::START);
      lines.push_back(cat(record.step(), " START"));
    }
    for (const auto& value : record.summary().value()) {
      if (value.has_metadata()) continue;  // of HParams, below
      lines.push_back(cat(record.step(), " ", value.tag(), " ", value.simple_value()));
    }
  }
  return lines;
}

std::vector<tensorboard::Event> only_file(const Folder& folder) {
  const std::vector<std::string> names = folder.names();
  EXPECT_EQ(names.size(), 1u);
  return records_of_file(folder.file(names.at(0)));
}

event::Start start_at(int64_t iteration) {
  event::Start start;
  start.iteration = iteration;
  return start;
}

struct ScalarRow {
  const char* what;
  std::vector<Event> events;
  std::vector<std::string> lines;
};

TEST(Tensorboard, WritesTheScalarsOfEachEvent) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const ScalarRow rows[] = {
      {"a display waits for its rate",
       {event::Display{100, 50, 2, 100, 0.5, {{"loss", 0.25, 1}, {"acc", 0.75}}, 0.125},
        event::LearningRate{100, 0.0625}},
       {"100 train/loss 0.5", "100 train/data_wait 0.125", "100 train/iterations_per_second 50",
        "100 train/acc 0.75", "100 train/learning_rate 0.0625"}},
      {"the first display has no speed",
       {event::Display{0, 0, 0, 100, 2, {}, 0}, event::LearningRate{0, 1}},
       {"0 train/loss 2", "0 train/data_wait 0", "0 train/learning_rate 1"}},
      {"a rate without a display", {event::LearningRate{3, 1}}, {}},
      {"outputs of several elements",
       {event::TestResult{7, 0, std::nullopt, {{"p", 1}, {"p", 2}, {"q", 3}}}},
       {"7 test/p[0] 1", "7 test/p[1] 2", "7 test/q 3"}},
      {"the second test net, with its loss",
       {event::TestResult{7, 1, 4.0, {{"acc", 0.5}}}},
       {"7 test1/total loss 4", "7 test1/acc 0.5"}},
      {"an epoch",
       {event::Epoch{2, 5, 40, 1.5, {{"loss", 3}}, {{"loss", 4}}}},
       {"40 epoch/epoch 2", "40 epoch/seconds 1.5", "40 epoch/loss 3", "40 epoch/val_loss 4"}},
      {"a loss that is nan", {event::NonFiniteLoss{9, nan, true}}, {"9 train/loss nan"}},
      {"one that is ignored", {event::NonFiniteLoss{9, nan, false}}, {}},
      {"the last loss", {event::FinalLoss{10, 8}}, {"10 train/loss 8"}},
      {"a start and a rollback outdate what follows them",
       {start_at(20), event::RolledBack{30, 25, "", "", 1, 3, 0.5f}},
       {"20 START", "25 START"}},
      {"a name that is not UTF-8",
       {event::TestResult{1, 0, std::nullopt, {{"\xff", 1}}}},
       {"1 test/\\377 1"}},
      {"events of others", {event::Step{5, 9}, event::TestBegin{1}, event::End{9}}, {}},
  };
  for (const ScalarRow& row : rows) {
    SCOPED_TRACE(row.what);
    const Folder folder;
    Lines log;
    TensorboardReader reader(log, folder.file("a/board"));
    reader.read(start_at(1));
    for (const Event& event : row.events) reader.read(event);
    const std::vector<std::string> names = [&] {
      std::vector<std::string> found;
      for (const auto& entry : std::filesystem::directory_iterator(folder.file("a/board")))
        found.push_back(entry.path());
      return found;
    }();
    ASSERT_EQ(names.size(), 1u);
    const std::vector<tensorboard::Event> records = records_of_file(names[0]);
    ASSERT_GE(records.size(), 2u);
    EXPECT_EQ(records[0].file_version(), "brain.Event:2");
    for (const tensorboard::Event& record : records) EXPECT_GT(record.wall_time(), 1e9);
    std::vector<std::string> lines = lines_of(records);
    ASSERT_EQ(lines.at(0), "1 START");
    lines.erase(lines.begin());
    EXPECT_EQ(lines, row.lines);
    EXPECT_EQ(log.all.size(), 0u);
  }
}

TEST(Tensorboard, ComparesWhatChangesHowANetLearns) {
  using Settings = std::vector<std::pair<std::string, std::string>>;
  struct Row {
    const char* solver;
    Settings settings;  // in the order of the schema
  };
  for (const Row& row :
       {Row{"base_lr: 0.25 net: \"a\" display: 5 snapshot: 7 snapshot_prefix: \"b\" device_id: 1 "
            "test_interval: 3 solver_mode: GPU",
            {{"base_lr", "0.25"}, {"type", "SGD"}}},
        Row{"type: \"Adam\" momentum: 0.5 stepvalue: 4",
            {{"momentum", "0.5"}, {"type", "Adam"}}}}) {
    SolverParameter solver;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(row.solver, &solver));
    EXPECT_EQ(settings_in(solver), row.settings) << row.solver;
  }
}

TEST(Tensorboard, GivesSettingsAndTheEndToThePluginThatComparesRuns) {
  for (const bool diverges : {false, true}) {
    const Folder folder;
    Lines log;
    {
      TensorboardReader reader(log, folder.path());
      event::Start start = start_at(0);
      start.settings = {{"base_lr", "0.01"}, {"type", "Adam"}, {"test_initialization", "false"}};
      reader.read(start);
      if (diverges) {
        reader.read(event::NonFiniteLoss{9, 1e30, true});
      } else {
        reader.read(event::End{10});
      }
    }
    std::map<std::string, tensorboard::HParamsPluginData> found;
    for (const tensorboard::Event& record : only_file(folder)) {
      for (const auto& value : record.summary().value()) {
        if (!value.has_metadata()) continue;
        EXPECT_EQ(value.metadata().plugin_data().plugin_name(), "hparams");
        EXPECT_EQ(value.tensor().dtype(), 1);
        ASSERT_TRUE(found[value.tag()].ParseFromString(value.metadata().plugin_data().content()));
      }
    }
    ASSERT_EQ(found.size(), 2u);
    const auto& hparams = found["_hparams_/session_start_info"].session_start_info().hparams();
    EXPECT_EQ(hparams.at("base_lr").number_value(), 0.01);
    EXPECT_EQ(hparams.at("type").string_value(), "Adam");
    EXPECT_TRUE(hparams.at("test_initialization").has_bool_value());
    EXPECT_EQ(found["_hparams_/session_end_info"].session_end_info().status(),
              diverges ? tensorboard::SessionEndInfo::STATUS_FAILURE
                       : tensorboard::SessionEndInfo::STATUS_SUCCESS);
  }
}

TEST(Tensorboard, ChecksumsAreThoseOfTheStandard) { EXPECT_EQ(crc32c("123456789"), 0xe3069283u); }

TEST(Tensorboard, EachStartWritesAFileBehindTheOthers) {
  const Folder folder;
  Lines log;
  const std::string late = "events.out.tfevents.9000000000.elsewhere.1";
  folder.write(late, "");
  std::vector<std::string> names = {late};
  for (int start = 0; start < 3; ++start) {
    TensorboardReader reader(log, folder.path());
    reader.read(start_at(10 * start));
    const std::vector<std::string> now = folder.names();
    ASSERT_EQ(now.size(), names.size() + 1);
    EXPECT_EQ(std::vector<std::string>(now.begin(), now.end() - 1), names);
    names = now;
    EXPECT_EQ(lines_of(records_of_file(folder.file(now.back()))),
              (std::vector<std::string>{cat(10 * start, " START")}));
  }
}

TEST(Tensorboard, IsReadableWhileItIsWritten) {
  const Folder folder;
  Lines log;
  TensorboardReader reader(log, folder.path());
  for (int i = 0; i < 5; ++i) {
    reader.read(event::FinalLoss{i, 1.0 * i});
    EXPECT_EQ(only_file(folder).size(), 2u + i);
  }
}

TEST(Tensorboard, WarnsOnceWhereItCannotWrite) {
  const Folder folder;
  folder.write("file", "");
  Lines log;
  TensorboardReader board(log, folder.file("file/board"));
  PicturesReader pictures(log, folder.file("file/pictures"));
  for (int i = 0; i < 3; ++i) {
    board.read(event::FinalLoss{i, 1});
    pictures.read(event::Pictures{i, "filters", "", {}});
  }
  ASSERT_EQ(log.all.size(), 2u);
  ASSERT_EQ(log.warnings.size(), 2u);
  expect_part(log.warnings[0],
              cat("cannot make the folder ", folder.file("file/board"), ": Not a directory"));
  expect_part(log.warnings[1], "pictures of this training: ");
  expect_part(log.warnings[1], "Not a directory");
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"file"}));
}

TEST(Tensorboard, DrawsTheNet) {
  const Folder folder;
  Lines log;
  TensorboardReader reader(log, folder.path());
  event::NetGraph net;
  net.nodes.push_back({"data", "Data", {}, {{4, 1, 2, 2}, {4}}, {{"layer", "a text"}}});
  net.nodes.push_back({"a/conv:1", "Convolution", {{0, 0}}, {{4, 3, 1, 1}}, {}});
  net.nodes.push_back({"loss", "SoftmaxWithLoss", {{1, 0}, {0, 1}}, {{}}, {}});
  reader.read(net);
  tensorboard::GraphDef graph;
  ASSERT_TRUE(graph.ParseFromString(only_file(folder).at(1).graph_def()));
  ASSERT_EQ(graph.node_size(), 3);
  const auto& shapes = graph.node(0).attr().at("_output_shapes").list();
  ASSERT_EQ(shapes.shape_size(), 2);
  ASSERT_EQ(shapes.shape(0).dim_size(), 4);
  EXPECT_EQ(shapes.shape(0).dim(3).size(), 2);
  EXPECT_EQ(shapes.shape(1).dim(0).size(), 4);
  EXPECT_EQ(graph.node(0).attr().at("layer").s(), "a text");
  EXPECT_EQ(graph.node(1).name(), "a/conv_1");
  EXPECT_EQ(graph.node(1).op(), "Convolution");
  EXPECT_EQ(graph.node(1).input(0), "data");
  EXPECT_EQ(graph.node(2).input(0), "a/conv_1");
  EXPECT_EQ(graph.node(2).input(1), "data:1");
  EXPECT_EQ(graph.node(2).attr().at("_output_shapes").list().shape(0).dim_size(), 0);
}

TEST(Tensorboard, WritesHistogramsAndPictures) {
  const Folder folder;
  Lines log;
  TensorboardReader reader(log, folder.path());
  reader.read(event::Histogram{5, "weights/a/0", -1, 3, 4, 2, 12, {0, 3}, {1, 3}});
  const Picture dot{1, 1, 3, {255, 0, 10}, "7"};
  reader.read(event::Pictures{6, "filters", "First layer", {dot, dot}});
  reader.read(event::Pictures{7, "mistakes", "none", {}});
  const std::vector<tensorboard::Event> records = only_file(folder);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[1].step(), 5);
  const auto& value = records[1].summary().value(0);
  EXPECT_EQ(value.tag(), "weights/a/0");
  EXPECT_EQ(value.histo().ShortDebugString(),
            "min: -1 max: 3 num: 4 sum: 2 sum_squares: 12 bucket_limit: 0 bucket_limit: 3 "
            "bucket: 1 bucket: 3");
  const auto& image = records[2].summary().value(0);
  EXPECT_EQ(image.tag(), "filters");
  const Picture picture = picture_of_png(image.image().encoded_image_string());
  EXPECT_EQ(picture.width, image.image().width());
  EXPECT_EQ(picture.height, image.image().height());
  EXPECT_EQ(picture.channels, image.image().colorspace());
}

}  // namespace tensorboard_test
}  // namespace crema::tests
