// Events: one record for each thing that happens in a training run. The log, the status line and
// metric files all read this one stream; the training loop itself prints nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/png.h"

namespace crema {

// One element of an output of a net; an output of n elements gives n of these under one name.
struct OutputValue {
  std::string name;
  float value = 0;
  float loss_weight = 0;  // not 0: the value is a loss with this weight
};

// What a run trains; for the hashes see solver/events/run_identity.h and fingerprint_of().
struct RunIdentity {
  std::string net_file = {}, solver_file = {};
  std::string net_text = {}, recipe = {};  // hashes of the net, and of net and solver
  std::string parameters = {};             // a hash of their names and shapes
  std::string weights = {};                // a hash of their values when the run begins or resumes
  std::string resumed_from = {};           // a state file; "": not resumed
  std::string classes = {};                // their names, one a line; "": numbers only
};

namespace event {

// The run begins (or resumes, when iteration is not 0).
struct Start {
  std::string net = {}, solver_type = {}, policy = {};
  int64_t iteration = 0, max_iter = 0;
  int iter_size = 1;
  uint64_t seed = 0;
  RunIdentity run = {};
  double epoch = 0;  // updates that read each record of the training data once; 0: not known
  // The solver's settings_in() of solver/events/run_identity.h.
  std::vector<std::pair<std::string, std::string>> settings = {};
};

// An update is done; `iteration` counts the updates. Sent after every update: readers that draw
// limit their own rate.
struct Step {
  int64_t iteration = 0, max_iter = 0;
  double waited = 0;  // seconds that the training net has waited for data so far
};

// Every `display` iterations, before the update of that iteration.
struct Display {
  int64_t iteration = 0;
  double iterations_per_second = 0;
  double seconds = 0;  // since the last display
  int display = 0;
  double loss = 0;  // mean over average_loss iterations
  std::vector<OutputValue> outputs = {};
  double data_wait = 0;  // share of `seconds`, 0 to 1, that the training net waited for data
};

struct LearningRate {
  int64_t iteration = 0;
  double rate = 0;
};

// lr_policy "multistep", "plateau" or "stepearly" has reached its next step.
struct LearningRateStep {
  std::string policy;
  int64_t iteration = 0;
  int step = 0;
};

struct GradientsClipped {
  int64_t iteration = 0;
  double norm = 0, limit = 0, scale = 0;
};

// The loss is NaN or infinite, with on_divergence STOP or IGNORE. Sent once per run.
struct NonFiniteLoss {
  int64_t iteration = 0;
  double loss = 0;
  bool stops = false;  // an error with more details ends the run; else the run continues
};

// on_divergence SKIP: the update of an iteration whose loss is not finite was left out.
struct UpdateSkipped {
  int64_t iteration = 0;
  double loss = 0;
  int in_row = 0, most = 0;  // skipped one after the other, this one included; at most
};

// on_divergence ROLLBACK: the training has gone back.
struct RolledBack {
  int64_t iteration = 0;     // that diverged
  int64_t to = 0;            // updates done now
  std::string state = {};    // the snapshot restored; "": the start of the run
  std::string reason = {};   // what diverged and where
  int number = 0, most = 0;  // which time this is; at most
  float scale = 1;           // what the learning rate is multiplied with from now on
};

// early_stop: an output of the tests has not become better, and the training ends.
struct EarlyStopped {
  int64_t iteration = 0;
  std::string output;
  double best = 0;
  int tests = 0;  // since the best
};

struct TestBegin {
  int64_t iteration = 0;
  int net = 0, batches = 0;
};

struct TestBatch {
  int net = 0, done = 0, batches = 0;
};

// For a test of detections.
struct ClassPrecision {
  int label = 0;
  float precision = 0;  // average precision
  bool found = false;   // there were detections of this class
};

struct TestResult {
  int64_t iteration = 0;
  int net = 0;
  std::optional<double> loss = {};        // with test_compute_loss
  std::vector<OutputValue> outputs = {};  // means over the batches, or the mean average precision
  std::vector<ClassPrecision> classes = {};  // with eval_type: "detection"
  bool show_classes = false;
};

// After a TestResult, with -metrics confusion or SolverOptions::confusions: how often which class was
// taken for which.
struct Confusion {
  int64_t iteration = 0;
  int net = 0;
  int64_t classes = 0;
  // classes x classes: a row is the label, a column the net's answer.
  std::vector<int64_t> counts = {};
  std::string file = {};  // that has them too, if they are many; "": none
  bool asked = true;      // else the log, which is Caffe's, does not show it
};

// An epoch of the training data is over, with epoch_log.
struct Epoch {
  int64_t epoch = 0, epochs = 0;  // counted from 1; in all
  int64_t iteration = 0;
  double seconds = 0;              // with the test at its end
  std::vector<OutputValue> train;  // means over the epoch, of outputs of one element
  std::vector<OutputValue> test;   // of the first test net, at its end
};

// The layers of the training net, in their order, each with what it reads. Sent after Start.
struct NetGraph {
  struct Input {
    int node = 0, top = 0;  // which top of which node
  };
  struct Node {
    std::string name;  // unique
    std::string type;
    std::vector<Input> inputs;
    std::vector<std::vector<int64_t>> shapes;                // of the tops
    std::vector<std::pair<std::string, std::string>> notes;  // what else there is to say, by name
  };
  std::vector<Node> nodes;
};

// How the values of a parameter, or of its gradient, are distributed before the update of that
// iteration. Values that are not finite are left out. Sent every SolverOptions::histograms
// iterations.
struct Histogram {
  int64_t iteration = 0;
  std::string tag;  // "weights/conv1/0"
  double min = 0, max = 0, count = 0, sum = 0, sum_of_squares = 0;
  std::vector<double> limits, counts;  // the upper end of each bucket, and how many are in it
};

// Pictures of the net after a test: with tag "filters" its first layer, with "mistakes" the samples
// that it is surest about and wrong. Sent with SolverOptions::pictures.
struct Pictures {
  int64_t iteration = 0;
  std::string tag, title;
  std::vector<Picture> pictures;
};

// The losses of the iterations from `first` on, as they become known. With SolverOptions::records.
struct Losses {
  int64_t first = 0;
  std::vector<double> losses;
};

// Before an iteration: a hash of each parameter of the training net, as weights_hashes() has them. With
// SolverOptions::records.
struct WeightHashes {
  int64_t iteration = 0;
  std::vector<uint64_t> parameters;
};

// The loss of an iteration is far above those before it. With SolverOptions::records.
struct LossSpike {
  int64_t iteration = 0;
  double loss = 0, usual = 0;  // usual: the median of the iterations before
};

struct TestInterrupted {
  int64_t iteration = 0;
  int net = 0;
};

// A file of a snapshot is about to be written.
struct Snapshot {
  enum class Part { weights, state };
  int64_t iteration = 0;
  Part part = Part::weights;
  bool hdf5 = false;
  std::string path;
};

// The files of a snapshot are in place. No state: snapshot_include_state is false.
struct SnapshotDone {
  int64_t iteration = 0;
  std::string weights, state;
  std::string hash = {}, hash_of_average = {};  // of the weights; of their average, if one is kept
};

// A snapshot could not be written; training continues, earlier snapshots are untouched.
struct SnapshotFailed {
  int64_t iteration = 0;
  std::string reason;
};

// The optimizer state of a snapshot was restored.
struct Restored {
  std::string solver_type;
  int64_t iteration = 0;
};

// The loss after the last update (from one more forward pass).
struct FinalLoss {
  int64_t iteration = 0;
  double loss = 0;
};

struct End {
  int64_t iteration = 0;
  bool early = false;  // stopped by request
};

// A line of debug_info.
struct Debug {
  std::string line;
};

struct Warning {
  std::string line;
};

}  // namespace event

using Event =
    std::variant<event::Start, event::Step, event::Display, event::LearningRate,
                 event::LearningRateStep, event::GradientsClipped, event::NonFiniteLoss,
                 event::UpdateSkipped, event::RolledBack, event::EarlyStopped, event::TestBegin,
                 event::TestBatch, event::TestResult, event::Confusion, event::Epoch,
                 event::NetGraph, event::Histogram, event::Pictures, event::Losses,
                 event::WeightHashes, event::LossSpike, event::TestInterrupted, event::Snapshot,
                 event::SnapshotDone, event::SnapshotFailed, event::Restored, event::FinalLoss,
                 event::End, event::Debug, event::Warning>;

// A table, or, where there is one, the name of its file: as the log shows it.
std::vector<std::string> lines_of(const event::Confusion& confusion);

// Loss or weights have become NaN or infinite: what() names the iteration, the layer and the blob
// where that began, and says how to continue.
class Diverged : public Error {
 public:
  using Error::Error;
};

// A reader of the event stream. Called from the training thread, between iterations: it must be
// quick. An Error from it ends the training.
class EventReader {
 public:
  virtual ~EventReader() = default;
  virtual void read(const Event& event) = 0;
};

// Writes Caffe's log lines, letter for letter: scripts of the last ten years parse them.
class LogReader : public EventReader {
 public:
  explicit LogReader(Log& log) : log_(log) {}
  void read(const Event& event) override;

 private:
  Log& log_;
};

// Sends events to the log, on rank 0 only, and to other readers.
class EventSender {
 public:
  // The readers must outlive this.
  EventSender(Log& log, int rank, std::vector<EventReader*> readers)
      : log_(log), logs_(rank == 0), readers_(std::move(readers)) {}
  void operator()(const Event& event);

 private:
  LogReader log_;
  bool logs_;
  std::vector<EventReader*> readers_;
};

}  // namespace crema
