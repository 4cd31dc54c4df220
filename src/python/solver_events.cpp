#include "python/solver_events.h"

#include <variant>

namespace crema::python {

namespace py = pybind11;

namespace {

using py::literals::operator""_a;

py::dict fields(const event::Start& e) {
  return py::dict("event"_a = "start", "iteration"_a = e.iteration, "max_iter"_a = e.max_iter,
                  "net"_a = e.net, "type"_a = e.solver_type, "lr_policy"_a = e.policy,
                  "seed"_a = e.seed);
}
py::dict fields(const event::Step& e) {
  return py::dict("event"_a = "step", "iteration"_a = e.iteration, "max_iter"_a = e.max_iter);
}
py::dict fields(const event::Display& e) {
  return py::dict("event"_a = "display", "iteration"_a = e.iteration, "loss"_a = e.loss,
                  "iterations_per_second"_a = e.iterations_per_second, "data_wait"_a = e.data_wait,
                  "outputs"_a = dict_of(e.outputs));
}
py::dict fields(const event::LearningRate& e) {
  return py::dict("event"_a = "learning_rate", "iteration"_a = e.iteration, "rate"_a = e.rate);
}
py::dict fields(const event::LearningRateStep& e) {
  return py::dict("event"_a = "learning_rate_step", "iteration"_a = e.iteration, "step"_a = e.step,
                  "lr_policy"_a = e.policy);
}
py::dict fields(const event::GradientsClipped& e) {
  return py::dict("event"_a = "gradients_clipped", "iteration"_a = e.iteration, "norm"_a = e.norm,
                  "limit"_a = e.limit, "scale"_a = e.scale);
}
py::dict fields(const event::NonFiniteLoss& e) {
  return py::dict("event"_a = "non_finite_loss", "iteration"_a = e.iteration, "loss"_a = e.loss);
}
py::dict fields(const event::UpdateSkipped& e) {
  return py::dict("event"_a = "update_skipped", "iteration"_a = e.iteration, "loss"_a = e.loss);
}
py::dict fields(const event::RolledBack& e) {
  return py::dict("event"_a = "rolled_back", "iteration"_a = e.iteration, "to"_a = e.to,
                  "state"_a = e.state, "reason"_a = e.reason);
}
py::dict fields(const event::EarlyStopped& e) {
  return py::dict("event"_a = "early_stopped", "iteration"_a = e.iteration, "output"_a = e.output,
                  "best"_a = e.best, "tests"_a = e.tests);
}
py::dict fields(const event::TestBegin& e) {
  return py::dict("event"_a = "test_begin", "iteration"_a = e.iteration, "net"_a = e.net,
                  "batches"_a = e.batches);
}
py::dict fields(const event::TestBatch& e) {
  return py::dict("event"_a = "test_batch", "net"_a = e.net, "done"_a = e.done,
                  "batches"_a = e.batches);
}
py::dict fields(const event::TestResult& e) {
  py::dict all("event"_a = "test", "iteration"_a = e.iteration, "net"_a = e.net,
               "outputs"_a = dict_of(e.outputs));
  if (e.loss) all["loss"] = *e.loss;
  return all;
}
py::dict fields(const event::Epoch& e) {
  return py::dict("event"_a = "epoch", "iteration"_a = e.iteration, "epoch"_a = e.epoch,
                  "epochs"_a = e.epochs, "seconds"_a = e.seconds, "train"_a = dict_of(e.train),
                  "test"_a = dict_of(e.test));
}
py::dict fields(const event::TestInterrupted& e) {
  return py::dict("event"_a = "test_interrupted", "iteration"_a = e.iteration, "net"_a = e.net);
}
py::dict fields(const event::SnapshotDone& e) {
  return py::dict("event"_a = "snapshot", "iteration"_a = e.iteration, "weights"_a = e.weights,
                  "state"_a = e.state);
}
py::dict fields(const event::SnapshotFailed& e) {
  return py::dict("event"_a = "snapshot_failed", "iteration"_a = e.iteration,
                  "reason"_a = e.reason);
}
py::dict fields(const event::Restored& e) {
  return py::dict("event"_a = "restored", "iteration"_a = e.iteration);
}
py::dict fields(const event::FinalLoss& e) {
  return py::dict("event"_a = "final_loss", "iteration"_a = e.iteration, "loss"_a = e.loss);
}
py::dict fields(const event::End& e) {
  return py::dict("event"_a = "end", "iteration"_a = e.iteration, "early"_a = e.early);
}
py::dict fields(const event::Warning& e) {
  return py::dict("event"_a = "warning", "text"_a = e.line);
}
py::dict fields(const event::Confusion& e) {
  py::list rows;
  for (int64_t i = 0; i < e.classes; ++i) {
    py::list row;
    for (int64_t j = 0; j < e.classes; ++j)
      row.append(e.counts[static_cast<size_t>(i * e.classes + j)]);
    rows.append(row);
  }
  return py::dict("event"_a = "confusion", "iteration"_a = e.iteration, "net"_a = e.net,
                  "counts"_a = rows);
}
template <typename Other>
py::dict fields(const Other&) {
  return {};
}

}  // namespace

py::dict dict_of(const std::vector<OutputValue>& outputs) {
  py::dict all;
  for (const OutputValue& output : outputs) {
    const py::str name(output.name);
    if (!all.contains(name)) {
      all[name] = output.value;
    } else if (py::isinstance<py::list>(all[name])) {
      all[name].cast<py::list>().append(output.value);
    } else {
      py::list values;
      values.append(all[name]);
      values.append(output.value);
      all[name] = values;
    }
  }
  return all;
}

py::dict dict_of(const Event& event) {
  return std::visit([](const auto& e) { return fields(e); }, event);
}

}  // namespace crema::python
