// Requests: what a running training is asked to do, by signals, by the clock or by the solver's
// intervals. Ranks obey together.
#pragma once

#include <cstdint>
#include <functional>

#include "device/context.h"

namespace crema {

class Ranks;
class Snapshots;

// A request to a running training, obeyed at the next opportunity. `stop` ends it like its last
// iteration (snapshot_after_train says whether with a snapshot); snapshot_stop writes one in any
// case.
enum class Action { none, stop, snapshot, snapshot_stop };

class Requests {
 public:
  // action: returns each request once; may be empty. All must outlive this.
  Requests(Context& context, const std::function<Action()>& action, Ranks& ranks,
           Snapshots& snapshots)
      : context_(context), action_(action), ranks_(ranks), snapshots_(snapshots) {}

  // Between two iterations: writes the snapshot that is due, and does what was asked for.
  void obey(int64_t iteration);
  // Between the batches of a test: the same for requests alone. Returns whether the test ends.
  bool obey_in_test(int64_t iteration);

  // Whether a request to stop has been obeyed, since the last reset().
  bool stopped() const { return stopped_; }
  void stop() { stopped_ = true; }
  void reset() { stopped_ = false; }

 private:
  void obey_together(int64_t iteration);
  void carry_out(int64_t iteration, Action request, bool snapshot_is_due);

  Context& context_;
  const std::function<Action()>& action_;
  Ranks& ranks_;
  Snapshots& snapshots_;
  bool stopped_ = false;
};

}  // namespace crema
