#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "net/prototxt/upgrade.h"

namespace crema {

namespace {

const char* type_name(SolverParameter::SolverType type) {
  switch (type) {
    case SolverParameter::SGD:
      return "SGD";
    case SolverParameter::NESTEROV:
      return "Nesterov";
    case SolverParameter::ADAGRAD:
      return "AdaGrad";
    case SolverParameter::RMSPROP:
      return "RMSProp";
    case SolverParameter::ADADELTA:
      return "AdaDelta";
    case SolverParameter::ADAM:
      return "Adam";
    case SolverParameter::SAG:
      return "SAG";
  }
  return "";
}

}  // namespace

Upgrade upgrade_solver(SolverParameter* solver, const std::string& file, const Locate& where) {
  Upgrade upgrade;
  if (!solver->has_solver_type()) return upgrade;
  const std::string type = type_name(solver->solver_type());
  require(!solver->has_type() || solver->type() == type, where ? where("solver_type") : file,
          ": solver_type: ", SolverParameter::SolverType_Name(solver->solver_type()),
          " and type: \"", solver->type(), "\" say different things; remove solver_type");
  upgrade.changed = true;
  upgrade.notes.push_back(
      {Severity::info, cat("Attempting to upgrade input file specified using deprecated "
                           "'solver_type' field (enum)': ",
                           file)});
  solver->set_type(type);
  solver->clear_solver_type();
  upgrade.notes.push_back(
      {Severity::info,
       "Successfully upgraded file specified using deprecated 'solver_type' field "
       "(enum) to 'type' field (string)."});
  upgrade.notes.push_back(
      {Severity::warning, cat("solver_type may be dropped one day: write type: \"", type, "\".")});
  return upgrade;
}

std::vector<Note> complete_snapshot_prefix(SolverParameter* solver, const std::string& path) {
  const std::filesystem::path file(path);
  if (!solver->has_snapshot_prefix()) {
    solver->set_snapshot_prefix(std::filesystem::path(file).replace_extension().string());
    return {{Severity::info,
             cat("snapshot_prefix was not specified and is set to ", solver->snapshot_prefix())}};
  }
  if (!folder_exists(solver->snapshot_prefix())) return {};
  solver->set_snapshot_prefix(
      (std::filesystem::path(solver->snapshot_prefix()) / file.stem()).string());
  return {{Severity::info,
           cat("snapshot_prefix was a directory and is replaced to ", solver->snapshot_prefix())}};
}

}  // namespace crema
