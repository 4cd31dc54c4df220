// What the ranks of a training compare and agree on between iterations. Each function is called on
// all ranks; without a world there is one rank, and nothing to do.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/communicator.h"
#include "net/net.h"

namespace crema {

class GradientExchange;
struct ExchangeOptions;

// Throws a RankLost on all ranks; rank 0 tells the user.
[[noreturn]] void fail_together(const Communicator& world, const std::string& message);

// During its lifetime this rank may keep the others waiting.
class RankPause {
 public:
  explicit RankPause(const Context& context) : world_(context.world()) {
    if (world_) world_->begin_pause();
  }
  ~RankPause() {
    if (world_) world_->end_pause();
  }
  RankPause(const RankPause&) = delete;
  RankPause& operator=(const RankPause&) = delete;

 private:
  Communicator* world_;
};

// Rank 0's text, and its answer.
std::string of_rank_0(const Context& context, const std::string& text);
bool agreed(const Context& context, bool of_rank_0);

// What a rank's part of a batch gives for an output that is one value. Empty: it has several values,
// which may be one only where the rank's part of the batch is one sample.
struct RankValue {
  std::optional<double> value;
  PartsRule parts = PartsRule::mean;
  double divisor = 1, count = 0;  // of PartsRule::counted, as Layer::loss_count() says
};
// The values of the batches of all ranks. As many on all ranks; empty where a rank's is.
void combine_over_ranks(const Net& net, std::span<RankValue> values);

// Parameters that do not learn, as BatchNorm's running statistics, differ from rank to rank: on all
// of them they become the mean over the samples.
void average_statistics(Net& net);

// Error where the weights differ: names the first parameter.
void compare_weights(Net& net, int64_t iteration);

// What a rank trains, for the comparison at the start.
struct RankFact {
  std::string what, value;  // "net", a hash
  std::string hint;
};
// Error where a fact differs: names the rank and the fact.
void compare_facts(Communicator& world, const std::vector<RankFact>& facts);

// Requests, of a signal or of the clock, reach the ranks at different times: every so often, about
// four times a second, they exchange what they have got, and all of them obey in the same iteration.
class Agreement {
 public:
  struct Wish {
    bool stop = false;            // end after this iteration
    bool snapshot = false;        // asked for
    bool snapshot_stop = false;   // end, with a snapshot in any case
    bool timed_snapshot = false;  // rank 0's clock says that one is due
  };

  // settle: waits until the device has done all that is queued. A GPU may be a hundred iterations
  // behind the host: without that, the host's speed would be taken for that of the training, and the
  // next exchange would come many seconds later.
  explicit Agreement(Communicator& world, std::function<void()> settle = {})
      : world_(world), settle_(std::move(settle)) {}

  // The iteration of the next exchange.
  int64_t next() const { return next_; }
  // The wishes of all ranks. `iteration` is the same on all.
  Wish exchange(int64_t iteration, const Wish& mine);

 private:
  using Clock = std::chrono::steady_clock;
  Communicator& world_;
  std::function<void()> settle_;
  int64_t next_ = 0, last_ = -1;
  Clock::time_point last_at_;
  double rate_ = 0;  // iterations per second between the last two exchanges; 0: not known yet
};

// What the ranks of one run share. Without a world there is one, and nothing in it.
class Ranks {
 public:
  Ranks(Net& net, const ExchangeOptions& options);
  ~Ranks();

  // Compares what the ranks train; of_solver: what is to be compared of the solver. Throws on all of
  // them where they would not train the same.
  void join(Net& net, int64_t iteration, const std::vector<RankFact>& of_solver);

  bool several() const { return agreement_.has_value(); }
  GradientExchange* exchange() const { return exchange_.get(); }  // null: one rank
  // Whether they exchange requests after so many updates.
  bool agree_at(int64_t iteration) const { return several() && iteration >= agreement_->next(); }
  // The wishes of all ranks.
  Agreement::Wish agree(int64_t iteration, const Agreement::Wish& mine) {
    return agreement_->exchange(iteration, mine);
  }

 private:
  std::unique_ptr<GradientExchange> exchange_;
  std::optional<Agreement> agreement_;
};

}  // namespace crema
