// Files of a run whose disk is full for some time.
#include "solver/readers/record_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <set>

#include "event_file.h"
#include "solver/readers/metrics_reader.h"
#include "solver/readers/pictures_reader.h"
#include "solver/readers/tensorboard_reader.h"
#include "support.h"

namespace crema::tests {
namespace record_file_test {

// No file of this process grows beyond so many bytes.
class SizeLimit {
 public:
  explicit SizeLimit(size_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  SizeLimit(const SizeLimit&) = delete;
  SizeLimit& operator=(const SizeLimit&) = delete;

 private:
  sighandler_t handler_;
  rlimit before_{};
};

TEST(AppendFile, HasWholeRecordsOnly) {
  const Folder folder;
  AppendFile file(folder.file("a"));
  EXPECT_EQ(file.append("first\n"), 0);
  for (const size_t room : {0, 1, 6}) {
    const SizeLimit limit(6 + room);
    EXPECT_EQ(file.append("second\n"), EFBIG);
    EXPECT_EQ(folder.read("a"), "first\n") << room;
  }
  EXPECT_EQ(file.append("third\n"), 0);
  EXPECT_EQ(folder.read("a"), "first\nthird\n");
  EXPECT_EQ(AppendFile(folder.file("a/b")).append("x"), ENOTDIR);
  EXPECT_EQ(AppendFile(-1).append("x"), EBADF);
}

TEST(RecordFile, KeepsWhatFitsAndSaysWhatIsMissing) {
  const Folder folder;
  Lines log;
  const std::string large(RecordFile::kMostWaiting / 4, 'x');
  {
    RecordFile file(log, folder.file("a"));
    file.add("begin\n");
    {
      const SizeLimit limit(10);
      file.add("needed\n", RecordFile::Keep::always);
      for (int i = 0; i < 6; ++i) file.add(cat(i, large, "\n"));
      EXPECT_FALSE(file.all_written());
      EXPECT_EQ(folder.read("a"), "begin\n");
    }
    file.add("end\n");
    EXPECT_TRUE(file.all_written());
  }
  EXPECT_EQ(folder.read("a"),
            cat("begin\nneeded\n3", large, "\n4", large, "\n5", large, "\nend\n"));
  EXPECT_EQ(log.all, (std::vector<std::string>{
                         cat("Cannot write ", folder.file("a"),
                             ": File too large. The training continues and tries again."),
                         cat(folder.file("a"), " can be written again; 3 records are missing.")}));
  // At the end, too.
  log.all.clear();
  log.warnings.clear();
  {
    const SizeLimit limit(10);
    RecordFile file(log, folder.file("b"));
    for (int i = 0; i < 3; ++i) file.add("a long record\n");
  }
  EXPECT_EQ(folder.read("b"), "");
  ASSERT_EQ(log.warnings.size(), 2u);
  EXPECT_EQ(log.warnings[1], folder.file("b") + ": 3 records are missing at its end.");
}

// A run. During some of its events no file may be larger than this one, "": none.
void train(Log& log, const Folder& folder, const std::string& full, size_t room = 0) {
  MetricsReader metrics(log, MetricsReader::OneRun{folder.path()});
  TensorboardReader board(log, folder.file("board"));
  PicturesReader pictures(log, folder.file("pictures"));
  const auto send = [&](const Event& event) {
    metrics.read(event);
    board.read(event);
    pictures.read(event);
  };
  const auto show = [&](int64_t iteration) {
    send(event::Display{.iteration = iteration, .loss = 0.5, .outputs = {6, {"accuracy", 0.25f}}});
    send(event::LearningRate{iteration, 0.5});
    send(event::Pictures{iteration, "filters", "", {}});
  };
  send(event::Start{.net = "net"});
  for (int64_t i = 0; i < 4; ++i) show(i);
  {
    std::optional<SizeLimit> limit;
    std::filesystem::path path = folder.file(full);
    if (full == "board") path = std::filesystem::directory_iterator(path)->path();
    if (!full.empty()) limit.emplace(std::filesystem::file_size(path) + room);
    for (int64_t i = 4; i < 7; ++i) show(i);
    send(event::RolledBack{.iteration = 7, .to = 2, .scale = 0.5f});
    for (int64_t i = 2; i < 4; ++i) show(i);
  }
  for (int64_t i = 4; i < 6; ++i) show(i);
  send(event::End{6, false});
}

// Differences between two runs of the same events: names and times.
std::vector<std::string> lines_of(const Folder& folder) {
  std::vector<std::string> lines;
  for (const Run& run : read_runs(folder.file("metrics.jsonl"))) {
    for (const Metric& metric : run.metrics) {
      lines.push_back(cat(metric.iteration, " ", metric.kind));
      for (const auto& [name, value] : metric.values) lines.back() += cat(" ", name, " ", value);
    }
  }
  for (const std::string& row : split(folder.read("metrics.csv"), '\n')) {
    std::vector<std::string> cells = split(row, ',');
    if (cells.size() > 4) cells[0] = cells[4] = "";
    lines.push_back(join(cells, ","));
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder.file("board"))) {
    for (tensorboard::Event event : records_of_file(entry.path())) {
      event.clear_wall_time();
      const bool timed = event.has_summary() && event.summary().value(0).has_metadata();
      lines.push_back(timed ? "hparams" : event.ShortDebugString());
    }
  }
  lines.push_back(folder.read("pictures/filters.json"));
  return lines;
}

TEST(RecordFile, ADiskThatIsFullForSomeTimeCostsNothing) {
  const Folder undisturbed;
  Lines silence;
  train(silence, undisturbed, "");
  EXPECT_TRUE(silence.all.empty());
  const std::vector<std::string> expected = lines_of(undisturbed);
  std::set<std::string> seen;
  for (const char* full : {"metrics.jsonl", "metrics.csv", "board"}) {
    for (const size_t room : {3, 50}) {
      const Folder folder;
      Lines log;
      train(log, folder, full, room);
      EXPECT_EQ(lines_of(folder), expected) << full << " " << room;
      // Each file warns once, and says once that it works again.
      EXPECT_GE(log.warnings.size(), 1u) << full << " " << room;
      EXPECT_EQ(log.infos.size(), log.warnings.size()) << join(log.all, "\n");
      for (const std::string& line : log.warnings) expect_part(line, "and tries again.");
      for (const std::string& line : log.infos) {
        expect_part(line, " can be written again; nothing is missing.");
        seen.insert(line.substr(folder.path().size() + 1, 9));
      }
    }
  }
  EXPECT_EQ(seen, (std::set<std::string>{"board/eve", "metrics.c", "metrics.j"}));
}

}  // namespace record_file_test
}  // namespace crema::tests
