// Run folders of somebody who wants to read, or to stop, what is not his: links, pipes, devices and
// files without an end.
#include "tools/pages/runs/run_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "solver/readers/metrics_file.h"
#include "support.h"
#include "tools/pages/runs/found_runs.h"
#include "tools/pages/watch/watched_runs.h"

namespace crema::tests {
namespace run_file_test {

namespace fs = std::filesystem;

std::string line_of(const std::string& run, int iteration) {
  return cat(R"({"iteration":)", iteration, R"(,"kind":"train","run":")", run,
             R"(","time":1,"values":{"loss":2.5}})", "\n");
}

TEST(RunFile, IsRegularAndBehindNoLink) {
  const Folder folder;
  const std::string root = fs::canonical(folder.path()).string();
  const auto path = [&](const std::string& name) { return root + "/" + name; };
  folder.write("secret/key", "secret");
  folder.write("secret/pictures/a.json", "secret");
  folder.write("run/plain", "one\ntwo\n");
  folder.write("run/marked", "\xEF\xBB\xBFtext");
  fs::create_symlink(path("secret/key"), path("run/link"));
  fs::create_symlink("../secret/key", path("run/relative"));
  fs::create_symlink("plain", path("run/inside"));
  fs::create_symlink("/dev/zero", path("run/zero"));
  fs::create_symlink("nowhere", path("run/dangling"));
  fs::create_directory_symlink(path("secret/pictures"), path("run/pictures"));
  fs::create_directory_symlink(path("run"), path("again"));
  ASSERT_EQ(mkfifo(path("run/pipe").c_str(), 0600), 0);
  for (const auto& [name, text] :
       std::vector<std::pair<std::string, std::string>>{{"run/plain", "one\ntwo\n"},
                                                        {"run//plain", "one\ntwo\n"},
                                                        {"run/marked", "text"},
                                                        {"run/link", ""},
                                                        {"run/relative", ""},
                                                        {"run/inside", ""},
                                                        {"run/zero", ""},
                                                        {"run/dangling", ""},
                                                        {"run/pipe", ""},
                                                        {"run", ""},
                                                        {"run/none", ""},
                                                        {"run/plain/none", ""},
                                                        {"run/pictures/a.json", ""},
                                                        {"run/../secret/key", ""},
                                                        {"again/plain", ""}}) {
    EXPECT_EQ(text_of_run_file(path(name), 100), text) << name;
    EXPECT_EQ(is_run_file(path(name)), !text.empty()) << name;
  }
  EXPECT_EQ(text_of_run_file("/dev/zero", 100), "");
  EXPECT_EQ(text_of_run_file("/", 100), "");
  EXPECT_EQ(text_of_run_file("", 100), "");
  EXPECT_EQ(text_of_run_file(path("run/plain"), 7), "") << "larger than what is wanted";
  EXPECT_EQ(end_of_run_file(path("run/plain"), 7), "two\n");
  EXPECT_EQ(end_of_run_file(path("run/link"), 7), "");
  EXPECT_EQ(names_in_run(path("secret"), 9), (std::vector<std::string>{"key", "pictures"}));
  EXPECT_EQ(names_in_run(path("secret"), 1).size(), 1u);
  EXPECT_TRUE(names_in_run(path("run/pictures"), 9).empty());
  EXPECT_TRUE(names_in_run(path("again"), 9).empty());
  EXPECT_EQ(changed_in_run(path("run/none")), 0);
  EXPECT_GT(changed_in_run(path("run")), 0);

  make_run_file(path("run/stop"));
  make_run_file(path("run/stop"));
  EXPECT_TRUE(folder.has("run/stop"));
  expect_part(error_of([&] { make_run_file(path("again/stopped")); }), "cannot write");
  EXPECT_FALSE(folder.has("run/stopped"));
}

// The modes of a folder and of a file in it.
TEST(RunFile, IsOwnWhereNobodyElseCanWrite) {
  const Folder folder;
  const std::string root = fs::canonical(folder.path()).string();
  folder.write("run/net", "net");
  for (const auto& [mode_of_folder, mode, own] :
       std::vector<std::tuple<mode_t, mode_t, bool>>{{0755, 0644, true},
                                                     {0775, 0664, true},
                                                     {0755, 0666, false},
                                                     {0777, 0644, false},
                                                     {01777, 0644, true}}) {
    ASSERT_EQ(chmod((root + "/run").c_str(), mode_of_folder), 0);
    ASSERT_EQ(chmod((root + "/run/net").c_str(), mode), 0);
    EXPECT_EQ(RunFile(root + "/run/net").is_own(), own) << mode_of_folder << " " << mode;
  }
  EXPECT_FALSE(RunFile(root + "/run/none").is_own());
  if (geteuid() != 0) return;
  ASSERT_EQ(chown((root + "/run/net").c_str(), 12345, 12345), 0);
  EXPECT_FALSE(RunFile(root + "/run/net").is_own());
}

TEST(RunFile, RunsBehindLinksAreNotFound) {
  const Folder folder;
  folder.write("secret/metrics.jsonl", line_of("secret", 1));
  folder.write("runs/good/metrics.jsonl", line_of("good", 1));
  folder.write("runs/link/other", "");
  fs::create_symlink("../../secret/metrics.jsonl", folder.file("runs/link/metrics.jsonl"));
  fs::create_directory_symlink("../secret", folder.file("runs/folder"));
  // What the user types may be a link.
  fs::create_directory_symlink("runs", folder.file("mine"));
  const std::vector<FoundRuns> found = find_runs_below(folder.file("mine"));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "good");
  EXPECT_EQ(found[0].metrics, folder.file("mine/good/metrics.jsonl"));
  EXPECT_EQ(found[0].folder, fs::canonical(folder.file("runs/good")).string());
}

// One that is bad says so; the others are shown.
TEST(RunFile, BadMetricsHarmNoOtherRun) {
  const Folder folder;
  folder.write("runs/good/metrics.jsonl", line_of("aaaa", 1));
  folder.write("runs/huge/metrics.jsonl", line_of("bbbb", 7));
  fs::resize_file(folder.file("runs/huge/metrics.jsonl"), uint64_t{1} << 40);
  folder.write("runs/odd/metrics.jsonl", line_of("cccc", 1) + "what?\n");
  folder.write("runs/pipe/run.json", "{}");
  ASSERT_EQ(mkfifo(folder.file("runs/pipe/metrics.jsonl").c_str(), 0600), 0);
  WatchedRuns watched(folder.file("runs"));
  watched.refresh();
  EXPECT_EQ(watched.runs().size(), 3u);
  ASSERT_EQ(watched.errors().size(), 2u);
  expect_part(watched.errors()[0], "huge/metrics.jsonl:2: a line of more than 4.0 MiB");
  expect_part(watched.errors()[1], "odd/metrics.jsonl:2: expected one JSON object");
  for (const WatchedRun& run : watched.runs())
    EXPECT_EQ(run.error.empty(), run.name == "good") << run.name;
  // A file that becomes a link to another one.
  folder.write("secret", line_of("dddd", 5));
  fs::remove(folder.file("runs/good/metrics.jsonl"));
  fs::create_symlink("../../secret", folder.file("runs/good/metrics.jsonl"));
  watched.refresh();
  for (const WatchedRun& run : watched.runs()) EXPECT_NE(run.run->id, "dddd");
}

TEST(RunFile, LongMetricsAreReadInTurns) {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 17; ++i) text += std::string(1 << 20, ' ') + line_of("aaaa", i);
  folder.write("runs/long/metrics.jsonl", text);
  folder.write("runs/short/metrics.jsonl", line_of("bbbb", 2));
  WatchedRuns watched(folder.file("runs"));
  watched.refresh();
  ASSERT_EQ(watched.errors().size(), 1u);
  expect_part(watched.errors()[0], "long/metrics.jsonl: 16.0 MiB are read so far");
  ASSERT_EQ(watched.runs().size(), 2u);
  const size_t before = watched.runs()[0].run->metrics.size();
  watched.refresh();
  EXPECT_TRUE(watched.errors().empty());
  EXPECT_GT(watched.runs()[0].run->metrics.size(), before);
}

TEST(RunFile, MetricsHaveLimits) {
  const MetricsLimits limits{.line = 200, .lines = 50, .runs = 3, .restarts = 100};
  const auto error = [&](const std::string& text) {
    return error_of([&] { RunsInText("m", limits).add(text); });
  };
  std::string many, restarts;
  for (int i = 0; i < 60; ++i) many += line_of("a", i);
  for (int i = 0; i < 25; ++i)
    restarts += line_of("a", i) + R"({"iteration":1000,"kind":"start","run":"a"})" + "\n";
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {std::string(201, ' '), "m:1: a line of more than 200 bytes"},
           {line_of("a", 1) + std::string(201, '['), "m:2: a line of more than 200 bytes"},
           {many, "m:51: more than 50 lines; the rest is not read"},
           {line_of("a", 1) + line_of("b", 1) + line_of("c", 1) + line_of("d", 1),
            "m:4: more than 3 runs; the rest is not read"},
           {restarts, "too many starts and rollbacks; the rest is not read"}})
    expect_part(error(text), message);
  RunsInText fine("m", limits);
  fine.add(many.substr(0, many.size() / 2));
  EXPECT_EQ(fine.runs().size(), 1u);
}

}  // namespace run_file_test
}  // namespace crema::tests
