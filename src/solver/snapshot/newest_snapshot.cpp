#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "solver/snapshot/snapshot.h"
#include "solver/snapshot/state_file.h"

namespace crema {

int64_t iteration_of_state(const std::string& path) {
  constexpr std::string_view kMark = "_iter_";
  const size_t mark = path.rfind(kMark);
  if (mark == std::string::npos) return -1;
  const size_t begin = mark + kMark.size(), end = path.find_first_not_of("0123456789", begin);
  const std::string digits = path.substr(begin, end - begin);
  if (digits.empty() || digits.size() > 10 || end == std::string::npos) return -1;
  const std::string rest = path.substr(end);
  return rest == ".solverstate" || rest == ".solverstate.h5" ? std::stoll(digits) : -1;
}

std::vector<std::string> newest_snapshots(const SolverParameter& solver, Log& log) {
  require(solver.has_snapshot_prefix(),
          "-snapshot auto looks for the newest snapshot under snapshot_prefix, which is missing in "
          "the solver");
  const std::string& prefix = solver.snapshot_prefix();
  const std::string start = prefix.substr(prefix.rfind('/') + 1) + "_iter_";
  std::vector<std::pair<int64_t, std::string>> found;
  const std::string folder = folder_of(prefix);
  for (const std::string& name : list_folder_if_exists(folder)) {
    const int64_t iteration = iteration_of_state(name);
    if (iteration >= 0 && name.rfind(start, 0) == 0 &&
        name.find("_iter_", start.size()) == std::string::npos)
      found.emplace_back(iteration, cat(folder, "/", name));
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> whole;
  std::string reason;
  for (const auto& [iteration, path] : found) {
    try {
      require_readable(path);
      const SolverState state = read_solver_state(path);
      require_readable(find_snapshot_weights(state, path));
      whole.push_back(path);
    } catch (const FileError&) {  // it may be whole
      throw;
    } catch (const Error& error) {
      reason = error.what();
      log.warning(cat("-snapshot auto passes over ", reason));
    }
  }
  // Not begun anew over what may still be saved by hand.
  require(!whole.empty() || found.empty(), "none of the ", found.size(), " snapshots ", prefix,
          "_iter_* is whole: ", reason, "; move them away to begin anew");
  log.info(whole.empty() ? cat("-snapshot auto: there is no snapshot ", prefix,
                               "_iter_*: the training begins anew")
                         : cat("Going on from the newest snapshot, ", whole[0]));
  return whole;
}

}  // namespace crema
