// The token of runs whose launcher provides none: from a file, or from CREMA_TOKEN.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>

#include "comm/token_file.h"
#include "comm/world.h"
#include "control_ranks.h"

namespace crema::tests {
namespace token_test {

void sleep(double count) { std::this_thread::sleep_for(std::chrono::duration<double>(count)); }

unsigned mode_of(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777u : 0;
}

// Two ranks that share a file.
std::vector<ControlOptions> options_with(const std::string& path, int ranks = 2,
                                         double timeout = 20) {
  std::vector<ControlOptions> all = options_of(ranks, timeout);
  for (ControlOptions& one : all) {
    one.token.clear();
    one.token_file = path;
  }
  return all;
}

void gather(Control& control, int) { control.gather(""); }

TEST(TokenFile, IsForItsUserOnly) {
  const Folder folder;
  const std::string path = folder.file("new/folder/a.token");
  const mode_t mask = umask(0);
  std::string problem = "not read", first;
  {
    const TokenFile file(path);
    EXPECT_EQ(mode_of(path), 0600u);
    EXPECT_EQ(file.token().size(), 64u);
    EXPECT_EQ(read_token_file(path, &problem), file.token());
    EXPECT_EQ(problem, "");
    first = file.token();
    EXPECT_EQ(folder.names(), std::vector<std::string>{"new"});
  }
  umask(mask);
  EXPECT_FALSE(file_exists(path));
  // Replaces an existing file, even a link, whose target does not change.
  folder.write("precious", "precious");
  std::filesystem::create_symlink(folder.file("precious"), path);
  {
    const TokenFile file(path);
    EXPECT_EQ(read_token_file(path, &problem), file.token());
    EXPECT_NE(file.token(), first);
    // The file of another run stays.
    std::filesystem::remove(path);
    folder.write("new/folder/a.token", std::string(64, 'f'));
  }
  EXPECT_EQ(folder.read("precious"), "precious");
  EXPECT_TRUE(file_exists(path));
  std::filesystem::remove(path);
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("new/folder")));
}

TEST(TokenFile, OfOthersIsNotRead) {
  const Folder folder;
  const std::string path = folder.file("a"), text(64, 'a');
  const auto problem = [&] {
    std::string why;
    EXPECT_EQ(read_token_file(path, &why), "");
    return why;
  };
  EXPECT_EQ(problem(), "there is no such file");
  folder.write("a", text);
  for (const unsigned mode : {0640u, 0604u, 0620u, 0602u}) {
    chmod(path.c_str(), mode);
    EXPECT_EQ(problem(), "other users have access to it") << mode;
  }
  chmod(path.c_str(), 0600);
  std::string none;
  EXPECT_EQ(read_token_file(path, &none), text);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(path.c_str(), 12345, 0), 0);
    EXPECT_EQ(problem(), "it belongs to another user");
    ASSERT_EQ(chown(path.c_str(), 0, 0), 0);
  }
  for (const size_t size : {0, 63, 65, 4096}) {
    folder.write("a", std::string(size, 'a'));
    EXPECT_EQ(problem(), "it holds no token") << size;
  }
  std::filesystem::remove(path);
  folder.write("b", text);
  chmod(folder.file("b").c_str(), 0600);
  std::filesystem::create_symlink("b", path);
  EXPECT_EQ(problem(), "it is a symbolic link");
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(problem(), "it is not a regular file");
  std::filesystem::remove(path);
  folder.write("file", "");
  expect_part(error_of([&] { TokenFile(folder.file("file/a")); }),
              "the ranks' token cannot be written: Not a directory");
}

TEST(TokenFile, LetsRanksMeet) {
  const Folder folder;
  for (const int ranks : {2, 4}) {
    for (const RankResult& result : run_threads(options_with(folder.file("a"), ranks), gather))
      EXPECT_EQ(result.error, "");
    EXPECT_TRUE(folder.names().empty());
  }
}

// The standby's pending peers have the token that was read, not the stale one.
TEST(TokenFile, OfAnEarlierRunDoesNotConfuse) {
  const Folder folder;
  const std::string path = folder.file("a");
  // Rank 0 writes its file elsewhere at first, as if a network showed its file later.
  std::vector<ControlOptions> options = options_with(path, 3);
  options[0].token_file = folder.file("of_rank0");
  folder.write("a", std::string(64, 'a'));
  chmod(path.c_str(), 0600);
  std::vector<RankResult> results;
  const Count met;
  std::atomic<bool> lost = false;
  std::thread run([&] {
    results = run_threads(options, [&](Control& control, int rank) {
      control.gather("");
      met.add();
      while (rank == 0 && !lost) sleep(0.01);
      if (rank == 0) fail("rank 0 ends");
      control.gather("");
    });
  });
  while (!folder.has("of_rank0")) sleep(0.01);
  sleep(0.3);
  std::filesystem::copy_file(folder.file("of_rank0"), folder.file("b"));
  chmod(folder.file("b").c_str(), 0600);
  std::filesystem::rename(folder.file("b"), path);
  met.wait_for(3);
  lost = true;
  run.join();
  EXPECT_EQ(results[0].error, "rank 0 ends");
  for (const int rank : {1, 2}) EXPECT_TRUE(results[rank].told) << results[rank].error;
  EXPECT_FALSE(folder.has("of_rank0"));
}

TEST(TokenFile, IsMissed) {
  const Folder folder;
  // Another machine, whose home folder has no such file, or an old one.
  for (const bool old : {false, true}) {
    std::vector<ControlOptions> options = options_with(folder.file("a"), 2, 0.5);
    options[1].token_file = folder.file("b");
    if (old) folder.write("b", std::string(64, 'a'));
    if (old) chmod(folder.file("b").c_str(), 0600);
    const auto results = run_threads(options, gather);
    expect_part(results[0].error, "rank 1 has not come");
    expect_part(results[0].error,
                "Ranks on machines that do not share a home folder also need CREMA_TOKEN");
    EXPECT_EQ(results[0].error.find("was turned away") != std::string::npos, old);
    expect_part(results[1].error, old ? "another run, or one with another token than that in "
                                      : "but not the token of the run within 0.5 s: ");
    expect_part(results[1].error, folder.file("b"));
    expect_part(results[1].error, "set CREMA_TOKEN to the same secret in the environment of all");
    EXPECT_FALSE(results[1].met);
  }
}

// A process without access to the file: it knows only what can be guessed.
TEST(TokenFile, KeepsStrangersOut) {
  const Folder folder;
  const std::vector<ControlOptions> options = options_with(folder.file("a"));
  std::vector<RankResult> results;
  std::thread rank0([&] { results = run_threads({options[0]}, gather); });
  while (!folder.has("a")) sleep(0.01);
  for (const char* guess : {"", "torchrun run7", "srun 123456.0", "x"}) {
    const auto stranger = greet(options[0].address, guess, {2, 1, "stranger", ""});
    bool heard = false;
    const Moment until = ControlClock::now() + seconds(3);
    while (!stranger->ended() && ControlClock::now() < until) {
      stranger->receive([&](const Frame&) { heard = true; });
      sleep(0.005);
    }
    EXPECT_TRUE(stranger->ended()) << guess;
    EXPECT_FALSE(heard) << guess;
  }
  EXPECT_EQ(run_threads({options[1]}, gather)[0].error, "");
  rank0.join();
  EXPECT_EQ(results[0].error, "");
}

// --- launchers ---

using Variables = std::map<std::string, std::string>;

class RestoredVariable {
 public:
  RestoredVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~RestoredVariable() {
    if (before_) {
      setenv(name_, before_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  RestoredVariable(const RestoredVariable&) = delete;
  RestoredVariable& operator=(const RestoredVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

Launch launch_with(Variables variables, const std::string& token = "") {
  if (!token.empty()) variables["CREMA_TOKEN"] = token;
  return *launch_of([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Variables torchrun(int rank, int port) {
  return {{"RANK", cat(rank)},       {"WORLD_SIZE", "2"},       {"LOCAL_RANK", cat(rank)},
          {"LOCAL_WORLD_SIZE", "2"}, {"MASTER_ADDR", "node01"}, {"MASTER_PORT", cat(port)}};
}
Variables srun(int rank, int job) {
  return {{"SLURM_JOB_ID", cat(job)},   {"SLURM_STEP_ID", "0"},
          {"SLURM_PROCID", cat(rank)},  {"SLURM_STEP_NUM_TASKS", "2"},
          {"SLURM_LOCALID", cat(rank)}, {"SLURM_STEP_TASKS_PER_NODE", "2"}};
}

// The messages of both ranks; "" if they meet.
std::vector<std::string> messages_of(const std::vector<Launch>& launches, double timeout) {
  std::vector<std::string> messages(launches.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < launches.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        meet(launches[i], timeout)->gather("here");
      } catch (const Error& error) {
        messages[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return messages;
}

// A port that nothing listens on, at least for a moment.
int free_port() {
  const Listening listening = listen_on("127.0.0.1", 0);
  close(listening.socket);
  return listening.port;
}

TEST(Token, OfLaunchers) {
  const Folder folder;
  const RestoredVariable cache("XDG_CACHE_HOME", folder.path());
  const std::string secret(16, 's'), other(16, 'o');
  for (const bool slurm : {false, true}) {
    const int number = free_port();  // srun's port is made from it
    const auto launch = [&](int rank, const std::string& token) {
      return launch_with(slurm ? srun(rank, number) : torchrun(rank, number), token);
    };
    const std::vector<std::string> none(2);
    EXPECT_EQ(messages_of({launch(0, ""), launch(1, "")}, 20), none);
    EXPECT_TRUE(std::filesystem::is_empty(folder.file("crema")));
    EXPECT_EQ(messages_of({launch(0, secret), launch(1, secret)}, 20), none);
    for (const std::string& token : {other, std::string()}) {
      const auto wrong = messages_of({launch(0, secret), launch(1, token)}, 0.5);
      expect_part(wrong[0], "rank 1 has not come");
      expect_part(wrong[1], token.empty() ? "there is no such file" : "one with another token");
    }
  }
}

TEST(Token, FilesAreOfOneJob) {
  const Folder folder;
  const RestoredVariable cache("XDG_CACHE_HOME", folder.path());
  const std::string path = token_file_of(launch_with(srun(0, 7)));
  EXPECT_EQ(path, token_file_of(launch_with(srun(1, 7))));
  EXPECT_NE(path, token_file_of(launch_with(srun(0, 8))));
  EXPECT_EQ(folder_of(path), folder.file("crema"));
  EXPECT_EQ(token_file_of(launch_with(torchrun(0, 1000))),
            token_file_of(launch_with(torchrun(1, 1000))));
  EXPECT_NE(token_file_of(launch_with(torchrun(0, 1000))),
            token_file_of(launch_with(torchrun(0, 1001))));
  const RestoredVariable no_cache("XDG_CACHE_HOME", ""), no_home("HOME", "");
  expect_part(error_of([&] { token_file_of(launch_with(srun(0, 7))); }), "set CREMA_TOKEN");
}

}  // namespace token_test
}  // namespace crema::tests
