// The project that `crema new` writes: a folder with a net, a solver, data and a page for people.
#pragma once

#include <string>
#include <vector>

#include "tools/project/task.h"

namespace crema {

// What is decided about the training, and why.
struct Recipe {
  std::string model;  // the name or path of what the net was made of
  NetText net;        // connected to the data
  SolverParameter solver;
  int64_t batch = 0, iterations = 0;
  bool keeps_rate = false;               // base_lr belongs to the model's other values
  std::vector<std::string> decisions{};  // lines for people
};

// The model of models/ whose layers have the names and sizes of these weights. Error if less than half of them fit.
ModelChoice model_for_weights(const std::string& weights);

// Net, solver and batch for a task; `batch` and `iterations`: as the user wants them, 0: they are chosen.
Recipe recipe_of(Task& task, const NewOptions& options, int64_t batch, int64_t iterations);

// The text of solver.prototxt, with a comment for what people change most.
std::string solver_text(const SolverParameter& solver, const std::string& heading);

// The text of README.md. `result`: what the training reached, "" if it has not run.
struct ProjectPage {
  std::string name, data, command;  // of the project; what was given
  std::string flags;                // of the training, " -gpu 0 -weights FILE"
  std::string weights;              // the file that it writes, "runs/.../pets_iter_500.caffemodel"
  std::string run;                  // the folder of the run
  std::string result;
};
std::string page_text(const ProjectPage& page, const Task& task,
                      const std::vector<std::string>& survey,
                      const std::vector<std::string>& decisions);

}  // namespace crema
