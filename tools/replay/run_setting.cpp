#include "tools/replay/run_setting.h"

#include <filesystem>

#include "tools/devices.h"
#include "tools/flags/net_flags.h"

namespace crema {

FlagValues given_flags(const VerbCall& call) {
  FlagValues given;
  for (const std::string& name : call.given) {
    if (const auto value = call.flags.find(name); value != call.flags.end()) given.insert(*value);
  }
  return given;
}

void enter_folder_of(const RecordedRun& run) {
  if (!run.started_in().empty()) std::filesystem::current_path(run.started_in());
}

RunSetting setting_of(const VerbCall& call, const RecordedRun& run, const std::string& folder) {
  return setting_of(call.log, given_flags(call), run, folder);
}

RunSetting setting_of(ProgramLog& log, const FlagValues& given, const RecordedRun& run,
                      const std::string& folder) {
  RunSetting setting{run, folder, nullptr, {}, false, run.notes(), {}};
  const size_t notes = setting.notes.size();
  setting.flags = run.flags(given, &setting.notes);
  const FlagValues& values = setting.flags;
  const RunSettingFlags flags(values);
  const SolverParameter solver = run.solver("", run.iterations().end()).solver;
  const bool wants_gpu =
      solver.solver_mode() == SolverParameter::GPU && setting.notes.size() == notes;
  const int ordinal = solver.device_id_size() > 0 ? solver.device_id(0) : 0;
  setting.context = make_context(log, flags, wants_gpu ? ordinal : -1);
  setting.solver.net.precision =
      precision_of_flag(*setting.context, flags.precision, solver.precision());
  set_passes(flags, &setting.solver.net);
  if (const auto mode = values.find("weights_mode"); mode != values.end())
    setting.solver.weights_mode = weights_mode_of_flag(mode->second[0]);
  setting.solver.resume_command = [](const std::string&) { return ""; };
  setting.repeatable = setting.context->device() == Device::cpu || flags.deterministic;
  return setting;
}

std::vector<std::string> RunSetting::differences() const {
  enter_folder_of(run);
  const RunLock here = lock_of_program(*context, solver.net.precision, flags);
  std::vector<std::string> all = notes;
  for (const std::string& one : run.differences(here)) all.push_back(one);
  if (!repeatable)
    all.push_back("without -deterministic, a GPU adds up some sums in varying order");
  return all;
}

}  // namespace crema
