#include "solver/divergence/divergence_policy.h"

#include <cmath>
#include <limits>

#include "base/error.h"

namespace crema {

void check_divergence(const SolverFile& file) {
  const SolverParameter& solver = file.solver;
  require(solver.rollback_factor() > 0 && solver.rollback_factor() < 1,
          file.where("rollback_factor"), ": rollback_factor is ", solver.rollback_factor(),
          ", it must be more than 0 and less than 1, so that the rate falls");
  require(solver.rollback_most() > 0, file.where("rollback_most"), ": rollback_most is ",
          solver.rollback_most(), ", it must be at least 1");
  const double least = std::pow(solver.rollback_factor(), solver.rollback_most());
  require(least >= std::numeric_limits<float>::min(), file.where("rollback_factor"),
          ": rollback_factor is ", solver.rollback_factor(), " and rollback_most ",
          solver.rollback_most(), ": nothing would be left of the rate");
  require(solver.skip_most() > 0, file.where("skip_most"), ": skip_most is ", solver.skip_most(),
          ", it must be at least 1");
}

DivergencePolicy::Verdict DivergencePolicy::judge(double loss, bool updates) {
  if (std::isfinite(loss)) {
    if (updates) left_out_ = 0;
    return Verdict::update;
  }
  if (solver_.on_divergence() == SolverParameter::SKIP) {
    if (!updates) return Verdict::update;
    if (++left_out_ <= solver_.skip_most()) return Verdict::leave_out;
  }
  return checks_weights() ? Verdict::diverged : Verdict::ignore;
}

int DivergencePolicy::rollbacks(float scale) const {
  return static_cast<int>(std::lround(std::log(scale) / std::log(solver_.rollback_factor())));
}

}  // namespace crema
