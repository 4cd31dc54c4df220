#include "tools/tune/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.h"
#include "tools/flags/shell_words.h"

extern char** environ;

namespace crema {

namespace {

// Our environment, with `changes` replacing variables of the same names.
std::vector<std::string> environment_with(const std::vector<std::string>& changes) {
  std::vector<std::string> all = changes;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('=') + 1);
    bool changed = false;
    for (const std::string& change : changes) changed |= starts_with(change, name);
    if (!changed) all.push_back(text);
  }
  return all;
}

// In the new process, where after a fork only system calls are safe.
[[noreturn]] void become(char* const* arguments, char* const* environment, int log, pid_t parent,
                         const char* folder, bool shown) {
  if (!shown) setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);  // it ended before that
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (*folder && chdir(folder) != 0) _exit(127);
  if (!shown) {
    const int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, 0);
    dup2(nothing, 1);
    dup2(log, 2);
  }
  execve("/proc/self/exe", arguments, environment);  // also where a newer build has replaced it
  _exit(127);
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& arguments,
                           const std::vector<std::string>& environment, const Place& place)
    : log_(std::tmpfile(), std::fclose) {
  if (!log_) fail("no temporary file for the log of a run: ", std::strerror(errno));
  std::vector<std::string> words = {"crema"}, variables = environment_with(environment);
  words.insert(words.end(), arguments.begin(), arguments.end());
  const std::vector<char*> argv = pointers_to(words), envp = pointers_to(variables);
  const int log = fileno(log_.get());
  const pid_t self = getpid();
  pid_ = fork();
  if (pid_ == 0) become(argv.data(), envp.data(), log, self, place.folder.c_str(), place.shown);
  if (pid_ < 0) fail("a run cannot be started: ", std::strerror(errno));
}

ChildProcess::~ChildProcess() {
  if (code_) return;
  terminate();
  int status = 0;
  waitpid(pid_, &status, 0);
}

void ChildProcess::finish(int status) {
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::optional<int> ChildProcess::ended() {
  int status = 0;
  if (!code_ && waitpid(pid_, &status, WNOHANG) == pid_) finish(status);
  return code_;
}

int ChildProcess::wait() {
  int status = 0;
  while (!code_) {
    if (waitpid(pid_, &status, 0) == pid_) finish(status);
  }
  return *code_;
}

void ChildProcess::terminate() {
  if (!ended()) kill(pid_, SIGTERM);
}

std::string ChildProcess::message() {
  if (!code_ || *code_ == 0) return "";
  std::string log, found;
  std::array<char, 65536> part{};
  std::rewind(log_.get());
  while (const size_t count = std::fread(part.data(), 1, part.size(), log_.get()))
    log.append(part.data(), count);
  // "E1125 17:00:58.019898 10187 main.cpp:77] what happened".
  for (const std::string& line : split(log, '\n')) {
    const size_t text = line.find("] ");
    if (line.size() > 5 && line[0] == 'E' && line[1] >= '0' && line[1] <= '9' &&
        text != std::string::npos)
      found = line.substr(text + 2);
  }
  if (!found.empty()) return found;
  return *code_ > 128 ? cat("ended by signal ", *code_ - 128) : cat("exit code ", *code_);
}

}  // namespace crema
