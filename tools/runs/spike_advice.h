// SpikeAdvice: says how to look at an iteration whose loss is unusual.
#pragma once

#include <string>
#include <utility>

#include "base/log.h"
#include "solver/events/events.h"

namespace crema {

class SpikeAdvice : public EventReader {
 public:
  SpikeAdvice(Log& log, std::string folder) : log_(log), folder_(std::move(folder)) {}
  void read(const Event& event) override;

 private:
  Log& log_;
  const std::string folder_;  // of the run
};

// The command that opens an iteration of the run in this folder.
std::string replay_command(const std::string& folder, int64_t iteration);

}  // namespace crema
