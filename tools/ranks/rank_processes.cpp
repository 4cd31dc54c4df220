#include "tools/ranks/rank_processes.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <optional>

#include "base/error.h"
#include "base/hmac.h"
#include "comm/control_sockets.h"
#include "tools/flags/shell_words.h"

extern char** environ;

namespace crema {
namespace {

// Our environment, except for variables about ranks.
std::vector<std::string> environment_of(int rank, size_t ranks, const Listening& listening,
                                        const std::string& token) {
  std::vector<std::string> all = {cat("CREMA_RANK=", rank), cat("CREMA_RANKS=", ranks),
                                  cat("CREMA_ADDRESS=127.0.0.1:", listening.port),
                                  "CREMA_TOKEN=" + token,
                                  cat("CREMA_LISTENING=", rank == 0 ? cat(listening.socket) : "")};
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry, name = text.substr(0, text.find('=') + 1);
    const bool changed = std::any_of(all.begin(), all.begin() + 5, [&](const std::string& ours) {
      return starts_with(ours, name);
    });
    if (!changed) all.emplace_back(text);
  }
  return all;
}

// In the new process, where after a fork only system calls are safe.
[[noreturn]] void become(char* const* arguments, char* const* environment, int inherited,
                         pid_t parent, const sigset_t& mask) {
  // Nobody would wait for it or end it any more. The user may ignore SIGTERM.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it ended before that
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  if (inherited >= 0) fcntl(inherited, F_SETFD, 0);
  execve("/proc/self/exe", arguments, environment);  // also where a newer build has replaced it
  _exit(127);
}

// By SIGSTOP, a debugger or the terminal. It can neither notice anything nor obey SIGTERM.
bool is_stopped(pid_t pid) {
  std::string stat;
  std::getline(std::ifstream(cat("/proc/", pid, "/stat")), stat);
  const size_t name_end = stat.rfind(") ");  // the name may have parentheses
  const char state = name_end == std::string::npos ? ' ' : stat[name_end + 2];
  return state == 'T' || state == 't';
}

class Ranks {
 public:
  Ranks(const std::vector<std::vector<std::string>>& commands, double patience)
      : patience_(seconds(patience)) {
    sigemptyset(&waited_for_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&waited_for_, number);
    sigprocmask(SIG_BLOCK, &waited_for_, &before_);
    std::signal(SIGCHLD, SIG_DFL);  // ignored, it would take the exit codes
    try {
      start(commands);
    } catch (...) {
      end();
      throw;
    }
  }
  ~Ranks() { end(); }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  RanksEnd wait() {
    while (running_ > 0) {
      const timespec moment{0, 200000000};
      siginfo_t info{};
      const int number = sigtimedwait(&waited_for_, &info, &moment);
      // Signals from the kernel come from the terminal, which has also sent them to the ranks.
      if (number > 0 && number != SIGCHLD && info.si_code <= 0) pass_on(number);
      collect();
      if (failed_ && running_ > 0) press();
    }
    return {code_, message()};
  }

 private:
  struct Process {
    pid_t pid = -1;
    std::optional<int> status;  // once it has ended
    int sent = 0;               // the last signal by which this launcher asked it to end
  };

  void start(const std::vector<std::vector<std::string>>& commands) {
    const Listening listening = listen_on("127.0.0.1", 0);
    const Socket open(listening.socket);  // rank 0's from then on
    const std::string token = random_token();
    const pid_t self = getpid();
    for (size_t rank = 0; rank < commands.size(); ++rank) {
      std::vector<std::string> words = commands[rank];
      std::vector<std::string> variables =
          environment_of(static_cast<int>(rank), commands.size(), listening, token);
      const std::vector<char*> argv = pointers_to(words), envp = pointers_to(variables);
      const pid_t pid = fork();
      if (pid == 0)
        become(argv.data(), envp.data(), rank == 0 ? listening.socket : -1, self, before_);
      if (pid < 0) fail("rank ", rank, " cannot be started: ", std::strerror(errno));
      ranks_.push_back({pid, std::nullopt});
      ++running_;
    }
  }

  void pass_on(int number) {
    if (!ranks_[0].status) kill(ranks_[0].pid, number);
  }

  void collect() {
    for (Process& process : ranks_) {
      int status = 0;
      if (process.status || waitpid(process.pid, &status, WNOHANG) != process.pid) continue;
      process.status = status;
      --running_;
      const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      if (code == 0 || failed_) continue;
      failed_ = ControlClock::now();
      code_ = code;
    }
  }

  // One has failed. The control connection tells the others; where one does not listen, signals do.
  void press() {
    const auto since = ControlClock::now() - *failed_;
    const auto time_to_obey = std::min<ControlClock::duration>(patience_, std::chrono::seconds(1));
    for (Process& process : ranks_) {
      if (process.status) continue;
      const int number = is_stopped(process.pid) || since >= patience_ + time_to_obey ? SIGKILL
                         : since >= patience_                                         ? SIGTERM
                                                                                      : 0;
      if (number == 0 || number == process.sent) continue;
      process.sent = number;
      kill(process.pid, number);
    }
  }

  // A rank that ends with an exit code has said why.
  std::string message() const {
    std::string text;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      const int status = *ranks_[rank].status;
      if (WIFEXITED(status) && WEXITSTATUS(status) != 0) return "";
      if (!WIFSIGNALED(status) || ranks_[rank].sent != 0) continue;
      const int number = WTERMSIG(status);
      text += cat(text.empty() ? "" : ", ", "rank ", rank, " was ended by signal ", number, " (",
                  strsignal(number), ")");
    }
    if (code_ == 128 + SIGKILL) text += ". Linux does so when memory runs out: `dmesg` shows it";
    return text;
  }

  // Processes that still run when something else has failed.
  void end() {
    for (const Process& process : ranks_) {
      if (process.status) continue;
      kill(process.pid, SIGKILL);
      waitpid(process.pid, nullptr, 0);
    }
    ranks_.clear();
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }

  std::vector<Process> ranks_;
  int running_ = 0, code_ = 0;
  std::optional<Moment> failed_;  // the first
  // Time in which ranks learn that one of them has failed, or has been asked to stop, and end.
  const ControlClock::duration patience_;
  sigset_t waited_for_{}, before_{};
};

}  // namespace

RanksEnd run_ranks(const std::vector<std::vector<std::string>>& commands, double patience) {
  return Ranks(commands, patience).wait();
}

std::vector<std::string> arguments_for_gpu(
    int gpu, const std::vector<std::string>& words,
    const std::function<bool(const std::string& flag)>& takes_value) {
  std::vector<std::string> result;
  size_t at = 0;
  if (!words.empty()) result.push_back(words[at++]);
  for (; at < words.size() && words[at] != "--"; ++at) {
    const std::string& word = words[at];
    const bool is_flag = word.size() > 1 && word[0] == '-';
    const std::string text = is_flag ? word.substr(starts_with(word, "--") ? 2 : 1) : "";
    const std::string name = text.substr(0, text.find('='));
    const bool has_more = is_flag && name == text && takes_value(name) && at + 1 < words.size();
    if (is_flag && name == "gpu") {
      at += has_more;
      continue;
    }
    result.push_back(word);
    if (has_more) result.push_back(words[++at]);
  }
  result.push_back(cat("-gpu=", gpu));
  result.insert(result.end(), words.begin() + static_cast<int64_t>(at), words.end());
  return result;
}

}  // namespace crema
