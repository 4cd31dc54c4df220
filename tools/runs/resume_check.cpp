#include "tools/runs/resume_check.h"

#include "base/error.h"
#include "solver/snapshot/snapshot.h"
#include "solver/snapshot/state_file.h"
#include "tools/runs/same_training.h"
#include "tools/runs/vanishing_folder.h"

namespace crema {

namespace {

class ResumeCheck {
 public:
  ResumeCheck(ProgramLog& log, Context& context, const SolverFile& file,
              const SolverOptions& options, int iterations,
              const std::function<void(Solver&)>& prepare)
      : log_(log),
        context_(context),
        file_(file),
        options_(options),
        iterations_(iterations),
        prepare_(prepare) {
    SolverParameter& solver = file_.solver;
    // Snapshots come when this check requests them, and nothing depends on the clock.
    for (const char* field : {"snapshot", "snapshot_minutes", "max_minutes", "keep_last",
                              "keep_every", "snapshot_include_state"})
      solver.GetReflection()->ClearField(&solver, solver.GetDescriptor()->FindFieldByName(field));
  }

  void run() {
    const bool clock_decides = file_.solver.random_seed() < 0;
    const Training whole = train("whole", 2 * iterations_, "");
    log_.info(cat("-resume_check: again, with a snapshot after ", iterations_,
                  " iterations and new nets from there on"));
    context_.set_log(silent_log());
    file_.solver.set_random_seed(static_cast<int64_t>(seed_));
    train("half", iterations_, "");
    if (clock_decides) file_.solver.clear_random_seed();  // it comes with the snapshot
    const Training resumed = train("resumed", iterations_, state_);
    context_.set_log(log_);
    compare(whole, resumed);
  }

 private:
  Training train(const std::string& name, int iterations, const std::string& snapshot) {
    file_.solver.set_snapshot_prefix(folder_.file(name));
    SolverOptions options = options_;
    options.snapshot = snapshot;
    if (!snapshot.empty()) options.weights.clear();
    Training done;
    {
      Solver solver(context_, file_, options);
      prepare_(solver);
      const int64_t end = solver.iteration() + iterations;
      solver.step(iterations);
      require(!solver.stopped() && solver.iteration() == end, "-resume_check ", iterations_,
              ": the run stopped after ", solver.iteration(), " iterations, and ", 2 * iterations_,
              " are needed");
      seed_ = solver.seed();
      for (const Parameter& parameter : solver.net().parameters())
        done.weights.push_back(
            {cat("layer \"", parameter.layer, "\", blob ", parameter.index), values_of(parameter)});
      state_ = snapshot_files(solver.parameter(), end).state;
      solver.snapshot();
    }
    done.state = read_solver_state(state_);
    return done;
  }

  std::vector<float> values_of(const Parameter& parameter) {
    return to_floats(context_, parameter.data);
  }

  void compare(const Training& whole, const Training& resumed) const {
    const std::string differs = difference(whole, resumed);
    require(differs.empty(),
            "-resume_check: the resumed run differs from the uninterrupted one: ", differs, hint());
    size_t values = 0;
    for (const Training::Blob& blob : whole.weights) values += blob.values.size();
    log_.info(cat("-resume_check ", iterations_, ": equal bit for bit. ", iterations_,
                  " iterations, a snapshot and ", iterations_, " more give what ", 2 * iterations_,
                  " without a break give: ", whole.weights.size(), " blobs of weights (", values,
                  " values), ", whole.state.history_size(), " of history, and all counters"));
  }

  std::string hint() const {
    return context_.device() == Device::gpu && !context_.repeatable
               ? "; on a GPU the order of some sums varies: try again with -deterministic"
               : "";
  }

  VanishingFolder folder_{"crema_resume_check"};
  ProgramLog& log_;
  Context& context_;
  SolverFile file_;
  SolverOptions options_;
  int iterations_;
  const std::function<void(Solver&)>& prepare_;
  uint64_t seed_ = 0;
  std::string state_;  // of the training before
};

}  // namespace

void check_resume(ProgramLog& log, Context& context, const SolverFile& file,
                  const SolverOptions& options, int iterations,
                  const std::function<void(Solver&)>& prepare) {
  const int64_t max_iter = file.solver.max_iter();
  require(!file.solver.has_max_iter() || 2 * static_cast<int64_t>(iterations) <= max_iter,
          "-resume_check ", iterations, " trains twice as many iterations, but max_iter is ",
          max_iter, ": give at most ", max_iter / 2);
  ResumeCheck(log, context, file, options, iterations, prepare).run();
}

}  // namespace crema
