// ChildProcess: this program once more, with other arguments.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace crema {

class ChildProcess {
 public:
  struct Place {
    std::string folder{};  // in which it runs; "": this one
    // It shares this process's streams and receives a Ctrl-C itself; message() knows its exit code only.
    bool shown = false;
  };
  // Starts `crema ARGUMENTS...` with these variables ("NAME=VALUE") set in its environment. Its
  // stdout is dropped, its log is kept for message(), and a Ctrl-C at the terminal does not reach
  // it, unless it is shown. If this process ends, it gets SIGTERM.
  ChildProcess(const std::vector<std::string>& arguments,
               const std::vector<std::string>& environment, const Place& place);
  ChildProcess(const std::vector<std::string>& arguments,
               const std::vector<std::string>& environment)
      : ChildProcess(arguments, environment, Place()) {}
  ~ChildProcess();  // ends it by SIGTERM, and waits, where it still runs
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Its exit code once it has ended; 128 + number for a signal.
  std::optional<int> ended();
  int wait();  // until then
  // SIGTERM: a run writes a snapshot and ends.
  void terminate();
  // The last error in its log, otherwise that a signal ended it; "" after success.
  std::string message();

 private:
  void finish(int status);

  pid_t pid_ = -1;
  std::optional<int> code_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> log_;
};

}  // namespace crema
