// Attackers that can reach the ports of a run: they neither end it nor slow it down.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <thread>

#include "comm/control_frames.h"
#include "comm/control_sockets.h"
#include "comm/control_standby.h"
#include "control_ranks.h"

namespace crema::tests {
namespace control_attack_test {

void sleep(double count) { std::this_thread::sleep_for(std::chrono::duration<double>(count)); }

// --- what /proc says of a process ---

std::vector<std::string> descriptors_of(pid_t pid) {
  const std::string folder = cat("/proc/", pid, "/fd/");
  std::vector<std::string> targets;
  DIR* const all = opendir(folder.c_str());
  require(all != nullptr, "no ", folder);
  while (const dirent* entry = readdir(all)) {
    char target[256] = "";
    const std::string path = folder + entry->d_name;
    if (readlink(path.c_str(), target, sizeof target - 1) > 0) targets.emplace_back(target);
  }
  closedir(all);
  return targets;
}

// The address at which it listens.
std::string listening_address_of(pid_t pid) {
  const std::vector<std::string> all = descriptors_of(pid);
  const std::set<std::string> open(all.begin(), all.end());
  std::ifstream table(cat("/proc/", pid, "/net/tcp"));
  std::string line;
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state, word, inode;
    words >> number >> local >> remote >> state;
    for (int i = 0; i < 5; ++i) words >> word;
    words >> inode;
    if (state == "0A" && open.count(cat("socket:[", inode, "]")))
      return cat("127.0.0.1:", std::stoi(local.substr(local.find(':') + 1), nullptr, 16));
  }
  fail("process ", pid, " does not listen");
}

double processor_seconds_of(pid_t pid) {
  std::ifstream file(cat("/proc/", pid, "/stat"));
  std::string text;
  std::getline(file, text);
  std::istringstream words(text.substr(text.rfind(')') + 1));
  std::string word;
  for (int i = 0; i < 11; ++i) words >> word;
  double user = 0, system = 0;
  words >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// --- attacks ---

struct Attack {
  const char* name;
  int connections;
  std::string bytes;    // that each sends
  bool greets = false;  // before that, with a token that is wrong
};

// A header that states a payload of this size.
std::string header(FrameType type, uint64_t size) {
  return static_cast<char>(type) + std::string(reinterpret_cast<const char*>(&size), sizeof size);
}

const Attack kAttacks[] = {
    {"Idle", 300, ""},
    {"IdleByThousands", 2000, ""},
    {"HalfAHeader", 300, recorded_handshake().substr(0, 5)},
    {"HalfAHandshake", 300, recorded_handshake().substr(0, 30)},
    {"Junk", 300, "GET / HTTP/1.1\r\nHost: node01\r\n\r\n"},
    {"LongJunk", 20, std::string(100000, '\xff')},
    {"AHugeFrame", 300, header(FrameType::text, uint64_t{1} << 40)},
    {"AFrameOutOfPlace", 300, raw(FrameWriter(FrameType::failed).finish())},
    {"AnEmptyHandshake", 300, raw(FrameWriter(FrameType::handshake).finish())},
    {"ARecordedHandshake", 300, recorded_handshake()},
    {"AWrongToken", 300, "", true},
};

// Connects as often as it is told to, and keeps the connections.
std::vector<Socket> attack(const Attack& how, const std::string& address) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  std::vector<Socket> sockets;
  for (int i = 0; i < how.connections; ++i) {
    std::string reason;
    Socket socket =
        how.greets
            ? Socket(fcntl(greet(address, "y", kHandshake)->descriptor(), F_DUPFD_CLOEXEC, 0))
            : connect_to(parse_addresses(address)[0], ControlClock::now() + seconds(5), &reason);
    EXPECT_TRUE(socket) << reason;
    // It may have been closed meanwhile.
    [[maybe_unused]] const ssize_t ignored =
        send(socket.get(), how.bytes.data(), how.bytes.size(), MSG_NOSIGNAL);
    sockets.push_back(std::move(socket));
  }
  return sockets;
}

class ControlAttackTest : public testing::TestWithParam<Attack> {};

// The last rank comes while strangers occupy rank 0's port.
TEST_P(ControlAttackTest, TheRanksMeet) {
  std::vector<ControlOptions> options = options_of(3, 20);
  const ControlOptions late = options[2];
  options.pop_back();
  std::vector<RankResult> results;
  std::thread first(
      [&] { results = run_threads(options, [](Control& control, int) { control.gather(""); }); });
  const std::vector<Socket> strangers = attack(GetParam(), late.address);
  const RankResult last = result_of(late, [](Control& control, int) { control.gather(""); });
  first.join();
  EXPECT_EQ(last.error, "");
  EXPECT_LT(last.seconds, 5);
  for (const RankResult& result : results) EXPECT_EQ(result.error, "");
}

// Rank 1 listens as long as the run takes.
TEST_P(ControlAttackTest, TheRunGoesOn) {
  constexpr double kTimeout = 8, kHandshakeSeconds = 2;
  const Count ready;
  RankProcesses ranks(3, kTimeout, [&ready](Control& control, int) {
    for (int i = 0;; ++i) {
      control.gather("");
      if (i == 0) ready.add();
      sleep(0.05);
    }
  });
  ready.wait_for(3);
  const pid_t standby = ranks.pid(1);
  const std::string address = listening_address_of(standby);
  const size_t open = descriptors_of(standby).size();
  const double begin = processor_seconds_of(standby);
  std::vector<Socket> strangers = attack(GetParam(), address);
  sleep(0.2);
  EXPECT_LE(descriptors_of(standby).size(), open + 64 + 3);
  const Moment until = ControlClock::now() + seconds(kHandshakeSeconds + 1.5);
  for (const Socket& stranger : strangers) ASSERT_TRUE(is_closed_there(stranger.get(), until));
  EXPECT_EQ(descriptors_of(standby).size(), open);
  EXPECT_LT(processor_seconds_of(standby) - begin, 1);
  // While they come again rank 0 ends, and rank 1 alone tells the user.
  strangers = attack(GetParam(), address);
  ranks.signal(0, SIGKILL);
  const RankResult other = ranks.result(2), result = ranks.result(1);
  EXPECT_EQ(result.error, cat("rank 0 on ", this_host(), " has ended"));
  EXPECT_FALSE(result.told);
  EXPECT_EQ(other.error, result.error);
  EXPECT_TRUE(other.told);
}

INSTANTIATE_TEST_SUITE_P(Control, ControlAttackTest, testing::ValuesIn(kAttacks),
                         [](const auto& info) { return std::string(info.param.name); });

// Leaves this process so many descriptors.
void leave_descriptors(int count) {
  const rlimit limit{512, 512};
  setrlimit(RLIMIT_NOFILE, &limit);
  std::vector<int> all;
  for (int opened = 0; (opened = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;)
    all.push_back(opened);
  for (int i = 0; i < count; ++i) close(all[static_cast<size_t>(i)]);
}

// A rank that can open no file any more must not spin.
TEST(ControlAttack, OnARankWithoutDescriptors) {
  for (const int left : {0, 4}) {
    const Count ready;
    RankProcesses ranks(3, 20, [&](Control& control, int rank) {
      if (rank == 1) leave_descriptors(left);
      ready.add();
      while (true) {
        control.check();
        sleep(0.02);
      }
    });
    ready.wait_for(3);
    const pid_t standby = ranks.pid(1);
    const double begin = processor_seconds_of(standby);
    const std::vector<Socket> strangers = attack({"", 100, ""}, listening_address_of(standby));
    sleep(1.5);
    EXPECT_LT(processor_seconds_of(standby) - begin, 0.5);
    ranks.signal(0, SIGKILL);
    const RankResult other = ranks.result(2);
    EXPECT_EQ(other.told, left > 0);  // without any descriptor rank 1 cannot answer
    EXPECT_FALSE(ranks.result(1).told);
  }
}

TEST(ControlAttack, OnRank0WithoutDescriptors) {
  const std::vector<ControlOptions> options = options_of(2, 1);
  RankResult other;
  const pid_t pid = fork();
  if (pid == 0) {
    leave_descriptors(1);  // for the control itself
    const RankResult result = result_of(options[0], [](Control&, int) {});
    const bool right = result.error.find("rank 1 has not come to rank 0") != std::string::npos &&
                       result.error.find(
                           "rank 0 could not accept a connection: Too many open "
                           "files") != std::string::npos;
    if (!right) std::cerr << result.error << '\n';
    _exit(right && processor_seconds_of(getpid()) < 0.5 ? 0 : 1);
  }
  close(options[0].listening);
  EXPECT_FALSE(result_of(options[1], [](Control&, int) {}).met);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace control_attack_test
}  // namespace crema::tests
