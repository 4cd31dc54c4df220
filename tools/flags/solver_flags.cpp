#include "tools/flags/solver_flags.h"

#include "base/error.h"
#include "tools/runs/train_nets.h"

namespace crema {

SolverFile read_solver(ProgramLog& log, const SolverFlags& flags) {
  require(!flags.solver.empty(), "a solver is needed: -solver SOLVER.prototxt");
  SolverFile file = read_solver_file(flags.solver, std::make_shared<Settings>(flags.set));
  write_notes(log.library(), file.notes);
  return file;
}

SolverFile read_solver_or_model(ProgramLog& log, const SolverOrModelFlags& flags,
                                const char* needed) {
  require(!flags.solver.empty() || !flags.model.empty(), needed);
  SolverFile file =
      !flags.solver.empty()
          ? read_solver(log, flags)
          : parse_solver_text(
                "base_lr: 0.0001 lr_policy: \"fixed\" momentum: 0.9 weight_decay: 0.0005", "-model",
                std::make_shared<Settings>(flags.set));
  take_model_flag(flags.model, &file);
  return file;
}

// The schema's default for solver_mode is GPU, but without it Caffe computes on the CPU.
std::unique_ptr<Context> context_of(ProgramLog& log, const DeviceFlags& flags,
                                    const SolverFile& file) {
  const SolverParameter& solver = file.solver;
  const bool wants_gpu = solver.has_solver_mode() && solver.solver_mode() == SolverParameter::GPU;
  return make_context(log, flags,
                      !wants_gpu                     ? -1
                      : solver.device_id_size() == 0 ? 0
                                                     : solver.device_id(0));
}

void train_only(SolverParameter* solver) {
  for (const char* field :
       {"test_net", "test_net_param", "test_state", "test_iter", "test_interval", "test_epoch",
        "test_interval_epoch", "snapshot", "snapshot_epoch", "snapshot_minutes", "max_minutes",
        "keep_best", "early_stop", "plateau_test", "epoch_log", "ema_decay", "test_ema",
        "debug_info"}) {
    const auto* found = SolverParameter::descriptor()->FindFieldByName(field);
    SolverParameter::GetReflection()->ClearField(solver, found);
  }
}

}  // namespace crema
