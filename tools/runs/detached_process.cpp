#include "tools/runs/detached_process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.h"
#include "tools/flags/shell_words.h"

namespace crema {

namespace {

constexpr int kNiceness = 10;
constexpr int kReport = 3;  // the descriptor for errno if the program does not start

// Files of this process that lack O_CLOEXEC, such as those of GPU drivers.
void close_from(int first) {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, first, ~0U, 0) == 0) return;
#endif
  for (int file = first; file < 1024; ++file) close(file);
}

// In the new process, where after a fork only system calls are safe.
[[noreturn]] void become_detached(char* const* words, int log, int report) {
  setsid();
  if (fork() != 0) _exit(0);  // the program then belongs to init, which collects its exit code
  // This thread blocks the signals that another one receives.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int ignored : {SIGPIPE, SIGHUP, SIGINT}) signal(ignored, SIG_DFL);
  setpriority(PRIO_PROCESS, 0, kNiceness);
  // Above those that dup2() replaces.
  report = fcntl(report, F_DUPFD, 10);
  log = fcntl(log, F_DUPFD, 10);
  dup2(open("/dev/null", O_RDONLY), 0);
  dup2(log, 1);
  dup2(log, 2);
  dup2(report, kReport);
  fcntl(kReport, F_SETFD, FD_CLOEXEC);
  close_from(kReport + 1);
  execv(words[0], words);
  const int problem = errno;
  [[maybe_unused]] const ssize_t written = write(kReport, &problem, sizeof problem);
  _exit(127);
}

}  // namespace

void start_detached(std::vector<std::string> words, const std::string& log) {
  const std::vector<char*> argv = pointers_to(words);
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) fail(log, ": cannot write: ", std::strerror(errno));
  std::array<int, 2> report{};
  if (pipe2(report.data(), O_CLOEXEC) != 0) {
    const int problem = errno;
    close(file);
    fail(words[0], " cannot be started: ", std::strerror(problem));
  }
  const pid_t process = fork();
  int problem = process < 0 ? errno : 0;
  if (process == 0) become_detached(argv.data(), file, report[1]);
  close(report[1]);
  close(file);
  // The end of the pipe, without an errno in it, is that of a program which has started.
  if (process > 0) {
    if (read(report[0], &problem, sizeof problem) != sizeof problem) problem = 0;
    waitpid(process, nullptr, 0);
  }
  close(report[0]);
  if (problem != 0) fail(words[0], " cannot be started: ", std::strerror(problem));
}

}  // namespace crema
