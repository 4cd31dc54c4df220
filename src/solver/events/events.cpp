#include "solver/events/events.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>
#include <utility>

#include "base/strings.h"

namespace crema {
namespace {

// Each event in Caffe's words. Events that Caffe has no line for, such as Step, log nothing.
struct Lines {
  Log& log;

  void operator()(const event::Start& e) const {
    log.info(cat("Solving ", e.net));
    log.info(cat("Learning Rate Policy: ", e.policy));
  }
  void operator()(const event::Display& e) const {
    const auto rate = static_cast<float>(e.iterations_per_second),
               seconds = static_cast<float>(e.seconds);
    log.info(cat("Iteration ", e.iteration, " (", rate, " iter/s, ", seconds, "s/", e.display,
                 " iters), loss = ", static_cast<float>(e.loss)));
    outputs("Train", e.outputs);
    // A line of its own in Caffe's words, which its parsers delete: people's expressions match the
    // iteration's line from end to end.
    if (const auto percent = std::lround(100 * e.data_wait); percent > 0)
      log.info(cat("    Waiting for data: ", percent, " % of the time"));
  }
  void operator()(const event::LearningRate& e) const {
    log.info(cat("Iteration ", e.iteration, ", lr = ", e.rate));
  }
  void operator()(const event::LearningRateStep& e) const {
    const char* name = e.policy == "multistep" ? "MultiStep"
                       : e.policy == "plateau" ? "Plateau"
                                               : "StepEarly";
    log.info(cat(name, " Status: Iteration ", e.iteration, ", step = ", e.step));
  }
  void operator()(const event::GradientsClipped& e) const {
    log.info(cat("Gradient clipping: scaling down gradients (L2 norm ", e.norm, " > ", e.limit,
                 ") by scale factor ", e.scale));
  }
  void operator()(const event::NonFiniteLoss& e) const {
    if (e.stops) return;
    log.warning(cat("The loss of iteration ", e.iteration, " is ", e.loss,
                    ". Training goes on, as on_divergence: IGNORE asks"));
  }
  void operator()(const event::UpdateSkipped& e) const {
    log.warning(cat("The loss of iteration ", e.iteration, " is ", e.loss,
                    ": its update is left out, as on_divergence: SKIP asks (", e.in_row,
                    " in a row; more than ", e.most, " end the training)"));
  }
  void operator()(const event::RolledBack& e) const {
    log.warning(cat("In iteration ", e.iteration, ": ", e.reason, ". Back to iteration ", e.to,
                    ", ", e.state.empty() ? "the start of the run" : e.state,
                    ", with later data; the learning rate is multiplied by ", e.scale,
                    " from now on (rollback ", e.number, " of ", e.most, ")"));
  }
  void operator()(const event::LossSpike& e) const {
    log.warning(cat("The loss of iteration ", e.iteration, " is ", static_cast<float>(e.loss),
                    ", but those before it are about ", static_cast<float>(e.usual)));
  }
  void operator()(const event::EarlyStopped& e) const {
    log.info(cat("Early stop in iteration ", e.iteration, ": \"", e.output, "\" of the last ",
                 e.tests, " tests is not better than ", static_cast<float>(e.best)));
  }
  void operator()(const event::TestBegin& e) const {
    log.info(cat("Iteration ", e.iteration, ", Testing net (#", e.net, ")"));
  }
  void operator()(const event::TestResult& e) const {
    if (e.loss) log.info(cat("Test loss: ", static_cast<float>(*e.loss)));
    for (const event::ClassPrecision& c : e.classes) {
      if (!c.found) log.warning(cat("Missing true_pos for label: ", c.label));
      if (c.found && e.show_classes) log.info(cat("class", c.label, ": ", c.precision));
    }
    outputs("Test", e.outputs);
  }
  void operator()(const event::Confusion& e) const {
    if (!e.asked) return;
    for (const std::string& line : lines_of(e)) log.info(line);
  }
  // As Keras writes it, losses first, with the names of our blobs.
  void operator()(const event::Epoch& e) const {
    std::ostringstream line;
    line << "Epoch " << e.epoch << "/" << e.epochs << ": " << std::fixed
         << std::setprecision(e.seconds < 10 ? 2 : 0) << e.seconds << "s" << std::setprecision(4);
    for (const auto& [outputs, prefix] : {std::pair(&e.train, ""), std::pair(&e.test, "val_")}) {
      for (const bool losses : {true, false}) {
        for (const OutputValue& v : *outputs) {
          if ((v.loss_weight != 0) == losses)
            line << " - " << prefix << v.name << ": " << shown(v.value);
        }
      }
    }
    log.info(line.str());
  }
  void operator()(const event::TestInterrupted&) const { log.info("Test interrupted."); }
  void operator()(const event::Snapshot& e) const {
    log.info(cat("Snapshotting ", e.part == event::Snapshot::Part::state ? "solver state " : "",
                 e.hdf5 ? "to HDF5 file " : "to binary proto file ", e.path));
  }
  void operator()(const event::SnapshotFailed& e) const {
    log.error(cat("The snapshot of iteration ", e.iteration, " could not be written: ", e.reason,
                  ". Training goes on; the snapshots before it are untouched"));
  }
  // Here Caffe names the base class of all its solvers.
  void operator()(const event::Restored&) const { log.info("SGDSolver: restoring history"); }
  void operator()(const event::FinalLoss& e) const {
    log.info(cat("Iteration ", e.iteration, ", loss = ", static_cast<float>(e.loss)));
  }
  void operator()(const event::End& e) const {
    log.info(e.early ? "Optimization stopped early." : "Optimization Done.");
  }
  void operator()(const event::Debug& e) const { log.info(e.line); }
  void operator()(const event::Warning& e) const { log.warning(e.line); }
  void operator()(const event::Step&) const {}
  void operator()(const event::TestBatch&) const {}
  void operator()(const event::SnapshotDone&) const {}
  void operator()(const event::NetGraph&) const {}
  void operator()(const event::Histogram&) const {}
  void operator()(const event::Pictures&) const {}
  void operator()(const event::Losses&) const {}
  void operator()(const event::WeightHashes&) const {}

 private:
  void outputs(const char* phase, const std::vector<OutputValue>& values) const {
    for (size_t i = 0; i < values.size(); ++i) {
      const OutputValue& v = values[i];
      std::string line = cat("    ", phase, " net output #", i, ": ", v.name, " = ", v.value);
      if (v.loss_weight != 0)
        line += cat(" (* ", v.loss_weight, " = ", v.loss_weight * v.value, " loss)");
      log.info(line);
    }
  }
};

std::string padded_left(const std::string& text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

}  // namespace

std::vector<std::string> lines_of(const event::Confusion& confusion) {
  if (!confusion.file.empty()) return {"Wrote the confusion of the classes to " + confusion.file};
  const int64_t classes = confusion.classes;
  size_t width = cat(classes - 1).size();
  for (const int64_t count : confusion.counts) width = std::max(width, cat(count).size());
  ++width;
  std::vector<std::string> lines = {"Confusion (rows: labels, columns: what the net says):"};
  std::string head = padded_left("", width);
  for (int64_t c = 0; c < classes; ++c) head += padded_left(cat(c), width);
  lines.push_back(head);
  for (int64_t label = 0; label < classes; ++label) {
    std::string line = padded_left(cat(label), width);
    for (int64_t c = 0; c < classes; ++c)
      line += padded_left(cat(confusion.counts[label * classes + c]), width);
    lines.push_back(line);
  }
  return lines;
}

void LogReader::read(const Event& event) { std::visit(Lines{log_}, event); }

void EventSender::operator()(const Event& event) {
  if (logs_) log_.read(event);
  for (EventReader* reader : readers_) reader->read(event);
}

}  // namespace crema
