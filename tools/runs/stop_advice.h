// StopAdvice: after a run was stopped on request, logs the command that continues it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "solver/events/events.h"
#include "tools/console/program_log.h"

namespace crema {

class StopAdvice : public EventReader {
 public:
  // `command` gives the command that resumes from a state file.
  StopAdvice(ProgramLog& log, std::function<std::string(const std::string& state)> command)
      : log_(log), command_(std::move(command)) {}
  void read(const Event& event) override;

 private:
  ProgramLog& log_;
  std::function<std::string(const std::string& state)> command_;
  int64_t max_iter_ = 0, iteration_ = 0;  // iteration of the newest state
  std::string state_;
  bool by_itself_ = false;  // early_stop ended it
};

}  // namespace crema
