// Training runs: train/CASE with net, solver, start weights, data and the values that BVLC Caffe
// got.
#include <cmath>

#include "base/files.h"
#include "data/databases/hdf5/hdf5_file.h"
#include "golden.h"
#include "solver/solver.h"

namespace crema::tests {
namespace {

// Records a run's losses and learning rates.
class Recorder : public EventReader {
 public:
  void read(const Event& event) override {
    if (const auto* display = std::get_if<event::Display>(&event)) losses.push_back(display->loss);
    if (const auto* rate = std::get_if<event::LearningRate>(&event)) rates.push_back(rate->rate);
  }
  std::vector<double> losses, rates;
};

class TrainingCase {
 public:
  TrainingCase(Context& context, const std::string& folder)
      : context_(context), folder_(folder), expected_(folder + "/expected.h5") {}

  CaseResult run() {
    const int64_t iterations = expected_.shape("lr")[0];
    Recorder recorder;
    SolverOptions options;
    options.weights = {folder_ + "/init.caffemodel"};
    options.readers = {&recorder};
    Solver solver(context_, solver_file(), options);
    for (int64_t i = 0; i < iterations; ++i) {
      solver.step(1);
      compare_trace(solver, i);
      if (i == 0) compare_parameters(solver, "param_iter1", 1e-6);
    }
    result_.compare("loss", recorder.losses, expected_.doubles("loss"), 1e-5, 1e-6);
    result_.compare("lr", recorder.rates, expected_.doubles("lr"), 1e-6, 0);
    compare_parameters(solver, "param_final", 1e-4);
    if (expected_.has("resume_loss")) {
      resume("mid_iter_15.solverstate");
      resume("mid_iter_15.solverstate.h5");
    }
    return result_;
  }

 private:
  SolverFile solver_file() {
    SolverFile file = read_solver_file(folder_ + "/solver.prototxt");
    file.solver.set_display(1);
    file.solver.set_snapshot(0);  // the folder of the case does not change
    file.solver.set_snapshot_after_train(false);
    return file;
  }

  void resume(const std::string& state) {
    Recorder recorder;
    SolverOptions options;
    options.snapshot = folder_ + "/" + state;
    options.readers = {&recorder};
    Solver solver(context_, solver_file(), options);
    const std::vector<double> losses = expected_.doubles("resume_loss");
    solver.step(static_cast<int64_t>(losses.size()));
    result_.compare("resume_loss", recorder.losses, losses, 1e-5, 1e-6);
    result_.compare("resume_lr", recorder.rates, expected_.doubles("resume_lr"), 1e-6, 0);
    compare_parameters(solver, "resume_param_final", 1e-4);
  }

  // Every layer with a parameter shows it, as in the reference.
  template <typename Visit>
  void for_each_parameter(Solver& solver, const std::string& group, Visit visit) {
    const Graph& graph = solver.net().graph();
    for (const auto& layer : expected_.children(group)) {
      const std::string position = group + "/" + layer.name;
      for (const auto& index : expected_.children(position)) {
        for (int i = 0; i < graph.net.layer_size(); ++i) {
          if (graph.net.layer(i).name() != layer.name) continue;
          const int id = graph.views[i].parameters.at(static_cast<size_t>(std::stoi(index.name)));
          visit(position + "/" + index.name, solver.net().parameters()[id].data);
        }
      }
    }
  }

  void compare_parameters(Solver& solver, const std::string& group, double tolerance) {
    for_each_parameter(solver, group, [&](const std::string& path, const Tensor& ours) {
      result_.compare(path, to_doubles(context_, ours), expected_.doubles(path), tolerance, 1e-7);
    });
  }

  void compare_trace(Solver& solver, int64_t iteration) {
    for_each_parameter(solver, "trace", [&](const std::string& path, const Tensor& ours) {
      double sum = 0, squares = 0;
      for (double value : to_doubles(context_, ours)) {
        sum += value;
        squares += value * value;
      }
      const std::vector<double> wanted = expected_.doubles(path);
      result_.compare(cat(path, " after update ", iteration + 1), {sum, std::sqrt(squares)},
                      {wanted[2 * iteration], wanted[2 * iteration + 1]}, 1e-4, 1e-5);
    });
  }

  Context& context_;
  std::string folder_;
  Hdf5File expected_;
  CaseResult result_;
};

}  // namespace

CaseResult run_training_case(Context& context, const std::string& folder) {
  return TrainingCase(context, folder).run();
}

}  // namespace crema::tests
