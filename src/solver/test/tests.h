// Tests: the test nets of a run, their results, and what follows from these: when the training ends
// (early_stop), when the rate falls, which weights are the best.
//
// Ranks share the batches of a test, and all of them come to its results, in the same bits, because
// they decide by them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/net.h"
#include "net/plan/memory_use.h"
#include "net/prototxt/prototxt.h"
#include "solver/events/events.h"
#include "solver/fields/solver_nets.h"

namespace crema {

class ClassMetrics;
class DebugInfo;
class Mistakes;
class Optimizer;
class Rates;
class SolverState;
class WatchedOutput;

class Tests {
 public:
  // All of it must outlive the tests.
  struct Run {
    Context& context;
    const SolverFile& file;
    Net& net;  // that is trained
    Optimizer& optimizer;
    Rates& rates;
    EventSender& send;
    std::vector<std::string> metrics;  // see class_metrics.h
    bool confusions = false;           // without metrics: of classifiers of up to 100 classes
    bool pictures = false, rgb = false;
    bool fills_inputs = false;  // the caller does; otherwise Input layers are an error
    // Called between the batches of a test: whether it is interrupted.
    std::function<bool()> stops;
    // Called in a test, with the weights that it has tested, if they are the best so far.
    std::function<void(const WatchedOutput& watched)> keep_best;
  };
  explicit Tests(Run run);
  ~Tests();
  Tests(const Tests&) = delete;
  Tests& operator=(const Tests&) = delete;

  // Makes the net with this number in the solver's file.
  Net& add(int number, const NetSource& source, const NetFile& file, NetOptions options);
  // Call after the last one. Error, with the position, where nothing gives an output that is watched.
  void watch();

  // Tests every net: test_iter batches each, or with test_epoch once over its data. True when
  // early_stop ends the training.
  bool run_all(int64_t iteration);
  // Tests one of nets().
  void run_one(int64_t iteration, size_t net);

  const std::vector<std::unique_ptr<Net>>& nets() const { return nets_; }
  // How many forward passes one of nets() has done.
  uint64_t& passes(size_t net);
  // The results of the last test of the first net.
  const std::vector<OutputValue>& last() const { return last_; }

  // Adds what the nets take to that of the training net, whose arena for blobs they share.
  void add_memory(MemoryKinds* all) const;
  void store(SolverState* state) const;
  // `path`: of the state.
  void restore(const SolverState& state, const std::string& path);

 private:
  struct Tested;

  bool run(int64_t iteration, size_t net);  // false: interrupted
  void observe(int64_t iteration, int number, const std::vector<OutputValue>& results);
  void send_confusion(int64_t iteration, const Tested& tested);
  void send_pictures(int64_t iteration);
  std::vector<WatchedOutput*> watched() const;

  Run run_;
  std::vector<std::unique_ptr<Net>> nets_;
  std::vector<Tested> tested_;          // of each net
  std::unique_ptr<Mistakes> mistakes_;  // of the first net; null without `pictures`
  std::vector<OutputValue> last_;
  std::unique_ptr<WatchedOutput> keep_best_, early_stop_, plateau_test_;  // null: not in the file
};

}  // namespace crema
