// TrackReader: -track starts `python3 crema/track RUN -to NAMES` (src/python/crema/track), which
// sends the run folder to MLflow or Weights & Biases, and copies its warnings into the log. The
// process outlives this one to send the rest. The training never waits for it.
#pragma once

#include <chrono>
#include <string>

#include "base/log.h"
#include "solver/events/events.h"

namespace crema {

class TrackReader : public EventReader {
 public:
  // `names`: "mlflow", "wandb" or both with a comma. Error for others.
  TrackReader(Log& log, std::string folder, std::string names);
  // The start of the training starts the process. If that fails, it warns.
  void read(const Event& event) override;

 private:
  using Clock = std::chrono::steady_clock;
  void start();
  void copy_warnings();
  std::string log_path() const { return folder_ + "/track/track.log"; }

  Log& log_;
  std::string folder_, names_;
  bool started_ = false;
  size_t copied_ = 0;  // bytes of its log that have been read
  Clock::time_point looked_{};
};

}  // namespace crema
