// Our own launcher. Its ranks are this test program once more, in which one test follows the
// environment's instructions.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/files.h"
#include "comm/control.h"
#include "comm/launcher.h"
#include "support.h"
// Parts of the program, not of the library.
#include "tools/ranks/rank_processes.h"

namespace crema::tests {
namespace start_ranks_test {

void sleep(double count) { std::this_thread::sleep_for(std::chrono::duration<double>(count)); }

// --- the work of a rank ---

constexpr const char* kScript = "CREMA_TEST_RANKS";   // what each does, separated by '|'
constexpr const char* kFolder = "CREMA_TEST_FOLDER";  // where it records what it has seen

void note(const std::string& name) {
  std::ofstream(cat(std::getenv(kFolder), "/", std::getenv("CREMA_RANK"), ".", name)) << getpid();
}

void act(const std::string& action) {
  const size_t space = action.find(' ');
  const std::string verb = action.substr(0, space);
  const double value = space == std::string::npos ? 0 : std::atof(action.c_str() + space);
  const int number = static_cast<int>(value);
  if (verb == "exit") _exit(number);
  if (verb == "raise") std::raise(number);
  if (verb == "sleep") sleep(value);
  if (verb == "ignore") std::signal(number, SIG_IGN);
  if (verb == "after") {  // that note
    const std::string path = cat(std::getenv(kFolder), "/", action.substr(space + 1));
    while (!file_exists(path)) sleep(0.01);
  }
  if (verb == "note") note(action.substr(space + 1));
  if (verb == "wait_for") {  // until that signal comes
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    int got = 0;
    sigwait(&set, &got);
    note(cat("got ", got));
  }
  if (verb == "block") {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_BLOCK, &set, nullptr);
  }
  if (verb == "meet") {
    const Launch launch = *launch_of_environment();
    Control control(
        {launch.rank, launch.ranks, launch.address, launch.listening, launch.token, 20, ""});
    const std::vector<std::string> all = control.gather(cat(launch.rank));
    for (int rank = 0; rank < launch.ranks; ++rank) {
      if (all[rank] != cat(rank)) _exit(90);
    }
    note("met");
  }
}

// The program of the ranks; disabled, so that nothing else runs it.
TEST(StartRanks, DISABLED_Rank) {
  const char* const script = std::getenv(kScript);
  const char* const rank = std::getenv("CREMA_RANK");
  if (!script || !rank) FAIL() << "only the tests below start this";
  for (const std::string& action : split(split(script, '|')[std::atoi(rank)], ';')) act(action);
  _exit(0);
}

// --- the launcher ---

RanksEnd run_script(const Folder& folder, const std::string& script, double patience) {
  setenv(kScript, script.c_str(), 1);
  setenv(kFolder, folder.path().c_str(), 1);
  std::vector<std::vector<std::string>> commands;
  for (size_t rank = 0; rank < split(script, '|').size(); ++rank) {
    commands.push_back({"tests", "--gtest_filter=StartRanks.DISABLED_Rank",
                        "--gtest_also_run_disabled_tests", "--gtest_brief=1"});
  }
  const RanksEnd end = run_ranks(commands, patience);
  unsetenv(kScript);
  unsetenv(kFolder);
  return end;
}

struct Row {
  const char* name;
  const char* script;
  double patience;
  int code;
  const char* message;
};

class StartRanksTest : public testing::TestWithParam<Row> {};

TEST_P(StartRanksTest, ReturnsTheFirstFailure) {
  const Folder folder;
  const RanksEnd end = run_script(folder, GetParam().script, GetParam().patience);
  EXPECT_EQ(end.code, GetParam().code);
  EXPECT_EQ(end.message, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    StartRanks, StartRanksTest,
    testing::Values(
        Row{"None", "exit 0|exit 0|exit 0", 20, 0, ""}, Row{"OnlyOne", "exit 7", 20, 7, ""},
        Row{"Rank0", "exit 3|sleep 60", 0.2, 3, ""},
        Row{"Another", "after 1.ends;sleep 0.3;exit 4|note ends;exit 5", 20, 5, ""},
        Row{"ASignalOfWhichARankTells", "after 1.ends;sleep 0.3;exit 1|note ends;raise 9", 20, 137,
            ""},
        Row{"ASignalOfWhichNobodyTells", "raise 9|sleep 60", 0.2, 137,
            "rank 0 was ended by signal 9 (Killed). Linux does so when memory runs out: `dmesg` "
            "shows it"},
        Row{"ManySignals", "raise 15|raise 15|exit 0", 20, 143,
            "rank 0 was ended by signal 15 (Terminated), rank 1 was ended by signal 15 "
            "(Terminated)"},
        // It is killed in the end.
        Row{"ARankThatDoesNotListen", "ignore 15;note deaf;sleep 60|after 0.deaf;exit 2", 0.2, 2,
            ""}),
    [](const auto& info) { return std::string(info.param.name); });

// Nothing else would end it, neither time nor SIGTERM.
TEST(StartRanks, AStoppedRankIsKilledAtOnce) {
  const Folder folder;
  const auto begin = std::chrono::steady_clock::now();
  const RanksEnd end = run_script(
      folder, cat("after 1.ready;sleep 0.3;exit 3|note ready;raise ", SIGSTOP, ";sleep 60"), 20);
  EXPECT_EQ(end.code, 3);
  EXPECT_EQ(end.message, "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(StartRanks, TheyMeet) {
  const Folder folder;
  EXPECT_EQ(run_script(folder, "meet|meet|meet|meet", 20).code, 0);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"0.met", "1.met", "2.met", "3.met"}));
}

// Starts the launcher in a separate process and waits until all ranks have recorded "ready".
class LauncherProcess {
 public:
  LauncherProcess(const std::string& script, size_t ranks) {
    pid_ = fork();
    if (pid_ == 0) _exit(run_script(folder, script, 20).code);
    for (int i = 0; i < 1000 && folder.names().size() < ranks; ++i) sleep(0.01);
    EXPECT_EQ(folder.names().size(), ranks);
  }
  ~LauncherProcess() {
    if (pid_ > 0) end(SIGKILL);
  }
  LauncherProcess(const LauncherProcess&) = delete;
  LauncherProcess& operator=(const LauncherProcess&) = delete;

  // Its exit code, or 128 + the signal that has ended it.
  int end(int signal) {
    kill(pid_, signal);
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  const Folder folder;

 private:
  pid_t pid_ = -1;
};

TEST(StartRanks, ASignalGoesToRank0) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    // It would end rank 1.
    LauncherProcess launcher(
        cat("block ", number, ";note ready;wait_for ", number, "|note ready;after 0.got ", number),
        2);
    EXPECT_EQ(launcher.end(number), 0);
    EXPECT_TRUE(launcher.folder.has(cat("0.got ", number)));
  }
}

// However the launcher ends, no rank is left behind.
TEST(StartRanks, EndWithTheirLauncher) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // so that this process can wait for them
  LauncherProcess launcher("ignore 15;note ready;sleep 60|ignore 15;note ready;sleep 60", 2);
  std::vector<pid_t> ranks;
  for (const char* name : {"0.ready", "1.ready"}) {
    std::string pid;
    for (int i = 0; i < 500 && pid.empty(); ++i, sleep(0.01)) pid = launcher.folder.read(name);
    ranks.push_back(std::stoi(pid));
  }
  EXPECT_EQ(launcher.end(SIGKILL), 128 + SIGKILL);
  for (const pid_t pid : ranks) {
    int status = 0, ended = 0;
    for (int i = 0; i < 500 && ended == 0; ++i, sleep(0.01)) ended = waitpid(pid, &status, WNOHANG);
    EXPECT_EQ(ended, pid);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  }
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

// --- their commands ---

TEST(RankArguments, NameOneGpu) {
  const auto takes_value = [](const std::string& flag) {
    return flag == "gpu" || flag == "solver" || flag == "set";
  };
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"crema train -solver a -gpu 0,1", "crema train -solver a -gpu=3"},
      {"crema train --gpu=all -solver a", "crema train -solver a -gpu=3"},
      {"train -gpu 0 -deterministic -gpu=0,1", "train -deterministic -gpu=3"},
      {"train -solver a", "train -solver a -gpu=3"},
      {"train -set -gpu -solver -gpu=1", "train -set -gpu -solver -gpu=1 -gpu=3"},
      {"train -set=gpu=1 -gpu_memory=0.5", "train -set=gpu=1 -gpu_memory=0.5 -gpu=3"},
      {"train -solver a -- -gpu 0", "train -solver a -gpu=3 -- -gpu 0"},
      {"train -gpu", "train -gpu=3"},
      {"train", "train -gpu=3"},
  };
  for (const auto& [all, one] : rows)
    EXPECT_EQ(join(arguments_for_gpu(3, split(all, ' '), takes_value), " "), one);
}

}  // namespace start_ranks_test
}  // namespace crema::tests
