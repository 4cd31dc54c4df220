#include "solver/rates/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/other_names.h"
#include "proto/solver.pb.h"
#include "solver/fields/field_ranges.h"

namespace crema {
namespace {

constexpr double kPi = 3.14159265358979323846;

// Every policy rounds where Caffe rounds: powers with an integer exponent in double, all else in
// float.
using Rate = float (*)(const SolverParameter& solver, int iteration, RateState* state);

float after_steps(const SolverParameter& s, int steps) {
  return static_cast<float>(s.base_lr() * std::pow(s.gamma(), steps));
}

float at_least_min(const SolverParameter& s, float rate) {
  return s.has_min_lr() ? std::max(rate, s.min_lr()) : rate;
}

float fixed(const SolverParameter& s, int, RateState*) { return s.base_lr(); }

float step(const SolverParameter& s, int iteration, RateState* state) {
  state->current_step = state->step_length > 0
                            ? static_cast<int>(iteration / state->step_length + 1e-9)
                            : iteration / s.stepsize();
  return after_steps(s, state->current_step);
}

float exponential(const SolverParameter& s, int iteration, RateState*) {
  return after_steps(s, iteration);
}

float inverse(const SolverParameter& s, int iteration, RateState*) {
  return s.base_lr() * std::pow(1.f + s.gamma() * static_cast<float>(iteration), -s.power());
}

float multistep(const SolverParameter& s, int iteration, RateState* state) {
  int& done = state->current_step;
  if (done < s.stepvalue_size() && iteration >= s.stepvalue(done)) ++done;
  return after_steps(s, done);
}

float polynomial(const SolverParameter& s, int iteration, RateState*) {
  const float done = static_cast<float>(iteration) / static_cast<float>(s.max_iter());
  return (s.base_lr() - s.min_lr()) * std::pow(1.f - done, s.power()) + s.min_lr();
}

float sigmoid(const SolverParameter& s, int iteration, RateState*) {
  const float distance = static_cast<float>(iteration) - static_cast<float>(s.stepsize());
  return s.base_lr() * (1.f / (1.f + std::exp(-s.gamma() * distance)));
}

float multifixed(const SolverParameter& s, int iteration, RateState*) {
  int stage = 0;
  while (stage < s.stageiter_size() - 1 && iteration > s.stageiter(stage)) ++stage;
  return s.stagelr(stage);
}

float vstep(const SolverParameter& s, int iteration, RateState*) {
  int stage = 0;
  for (int64_t end = s.vstep_size(0); stage < s.vstep_size_size() - 1 && iteration > end;)
    end += s.vstep_size(++stage);
  return s.vstep_lr(stage);
}

float step_early(const SolverParameter& s, int, RateState* state) {
  return after_steps(s, state->current_step);
}

float plateau(const SolverParameter&, int, RateState* state) {
  return state->plateau.rates[state->plateau.step];
}

int warmup_of(const SolverParameter& s) { return std::max(s.warmup_iter(), s.rampup_interval()); }

// From `from` (done 0) to `to` (done 1) along half a cosine wave.
float along_cosine(double from, double to, double done) {
  return static_cast<float>(to + (from - to) * (1 + std::cos(kPi * std::min(done, 1.0))) / 2);
}

double share_done(const SolverParameter& s, int iteration) {
  const int warmup = warmup_of(s);
  return static_cast<double>(iteration - warmup) / std::max(s.max_iter() - warmup, 1);
}

float cosine(const SolverParameter& s, int iteration, RateState*) {
  return along_cosine(s.base_lr(), s.min_lr(), share_done(s, iteration));
}

float warm_restarts(const SolverParameter& s, int iteration, RateState* state) {
  if (s.period() <= 0) return cosine(s, iteration, state);
  double at = iteration - warmup_of(s), length = s.period(), peak = s.base_lr();
  for (; at >= length; peak *= s.lr_mult()) {
    at -= length;
    length = std::max(1.0, length * s.p_mult());
  }
  return along_cosine(std::max<double>(peak, s.min_lr()), s.min_lr(), at / length);
}

float one_cycle(const SolverParameter& s, int iteration, RateState*) {
  const double peak = s.base_lr(), rise = s.onecycle_rise(), done = share_done(s, iteration);
  const double start = s.has_onecycle_start_lr() ? s.onecycle_start_lr() : peak / 25;
  const double end = s.has_onecycle_final_lr() ? s.onecycle_final_lr() : start / 1e4;
  return done < rise ? along_cosine(start, peak, done / rise)
                     : along_cosine(peak, end, (done - rise) / std::max(1 - rise, 1e-9));
}

struct Policy {
  const char* name;
  Rate rate;
  std::vector<const char*> needs;
};

const std::vector<Policy>& policies() {
  static const std::vector<Policy> all = {
      {"fixed", fixed, {}},
      {"step", step, {"gamma", "stepsize"}},
      {"exp", exponential, {"gamma"}},
      {"inv", inverse, {"gamma", "power"}},
      {"multistep", multistep, {"gamma", "stepvalue"}},
      {"poly", polynomial, {"power", "max_iter"}},
      {"sigmoid", sigmoid, {"gamma", "stepsize"}},
      {"multifixed", multifixed, {"stagelr", "stageiter"}},
      {"vstep", vstep, {"vstep_lr", "vstep_size"}},
      {"stepearly", step_early, {"gamma", "stepearly", "test_interval"}},
      {"plateau", plateau, {"gamma", "plateau_winsize"}},
      {"cosine", cosine, {"max_iter"}},
      {"sgdr", warm_restarts, {}},
      {"onecycle", one_cycle, {"max_iter"}},
  };
  return all;
}

const Policy& policy_of(const SolverParameter& solver) {
  for (const Policy& policy : policies()) {
    if (solver.lr_policy() == policy.name) return policy;
  }
  const std::vector<std::string> names = rate_policies();
  require(solver.has_lr_policy(), "lr_policy is missing in the solver; the policies are ",
          join(names, ", "), ", for example lr_policy: \"fixed\"");
  fail("unknown lr_policy \"", solver.lr_policy(), "\"",
       suggestion(Vocabulary::rate_policies, solver.lr_policy(), names), "; the policies are ",
       join(names, ", "));
}

void check_rates(const SolverParameter& s, const std::string& name) {
  const auto positive = [&](const char* field, int value) {
    require(value > 0, field, " is ", value, ": lr_policy \"", name,
            "\" needs a positive number of iterations");
  };
  const auto alike = [&](const char* a, int count_a, const char* b, int count_b) {
    require(count_a == count_b, a, " is given ", count_a, " times and ", b, " ", count_b,
            " times: lr_policy \"", name, "\" needs both once for each stage");
  };
  // A factor on the rate, or on the iterations. For "sigmoid" a negative one is what lets it fall.
  require(s.gamma() >= 0 || name == "sigmoid", "gamma is ", s.gamma(), ": lr_policy \"", name,
          "\" needs at least 0; write gamma: ", -s.gamma());
  require(s.power() >= 0 || name != "poly", "power is ", s.power(),
          ": lr_policy \"poly\" needs at least 0, or the rate is infinite at the end");
  require(s.p_mult() > 0 && s.lr_mult() >= 0, s.p_mult() > 0 ? "lr_mult is " : "p_mult is ",
          s.p_mult() > 0 ? s.lr_mult() : s.p_mult(),
          ": a factor on cycles and rates must not be negative, nor a cycle's be 0");
  if (name == "step") positive("stepsize", s.stepsize());
  if (name == "poly" || name == "cosine" || name == "onecycle") positive("max_iter", s.max_iter());
  if (name == "sgdr" && s.period() <= 0) positive("period", s.has_max_iter() ? 1 : s.period());
  if (name == "stepearly") positive("stepearly", s.stepearly());
  if (name == "multifixed") alike("stagelr", s.stagelr_size(), "stageiter", s.stageiter_size());
  if (name == "vstep") alike("vstep_lr", s.vstep_lr_size(), "vstep_size", s.vstep_size_size());
  require(name != "plateau" || s.plateau_winsize_size() <= Plateau::kMaxSteps,
          "plateau_winsize is given ", s.plateau_winsize_size(), " times, at most ",
          Plateau::kMaxSteps, " are possible");
  require(name != "onecycle" || (s.onecycle_rise() > 0 && s.onecycle_rise() <= 1),
          "onecycle_rise is ", s.onecycle_rise(), ": it is a share, more than 0 and at most 1");
}

}  // namespace

std::vector<std::string> rate_policies() {
  std::vector<std::string> names;
  for (const Policy& policy : policies()) names.push_back(policy.name);
  return names;
}

void check_learning_rate(const SolverParameter& solver) {
  const Policy& policy = policy_of(solver);
  const bool has_own_rates =
      policy.rate == multifixed || policy.rate == vstep;  // base_lr is then only for warm-up
  require(solver.has_base_lr() || (has_own_rates && warmup_of(solver) <= 0),
          "base_lr is missing in the solver: the learning rate to start from, for example "
          "base_lr: 0.01");
  for (const char* field : policy.needs) {
    require(is_set(solver, field), "lr_policy \"", policy.name, "\" needs ", field,
            ", which is missing in the solver");
  }
  require(solver.warmup_iter() <= 0 || solver.rampup_interval() <= 0,
          "warmup_iter and rampup_interval are both given: the rate rises in a line, or with a "
          "square; keep one of them");
  check_rates(solver, policy.name);
}

RateState first_rate_state(const SolverParameter& solver) {
  RateState state;
  if (solver.lr_policy() != "plateau") return state;
  Plateau& plateau = state.plateau;
  plateau.steps = solver.plateau_winsize_size();
  for (int i = 0; i < plateau.steps; ++i) plateau.windows[i] = solver.plateau_winsize(i);
  for (int i = 0; i <= plateau.steps; ++i)
    plateau.rates[i] = at_least_min(solver, after_steps(solver, i));
  plateau.average = solver.average_loss();
  plateau.warmup = warmup_of(solver);
  return state;
}

double learning_rate(const SolverParameter& s, int iteration, RateState* state) {
  const auto done = static_cast<float>(iteration);
  float rate = 0;
  if (iteration < s.warmup_iter()) {
    const auto all = static_cast<float>(s.warmup_iter());
    rate = (done * s.base_lr() + (all - done) * s.warmup_start_lr()) / all;
  } else if (iteration < s.rampup_interval()) {
    const float part = done / static_cast<float>(s.rampup_interval());
    rate = s.rampup_lr() + (s.base_lr() - s.rampup_lr()) * part * part;
  } else {
    rate = policy_of(s).rate(s, iteration, state);
  }
  return at_least_min(s, rate) * state->scale;
}

// Each iteration after the warm-up does one step at most.
int multistep_before(const SolverParameter& s, int64_t iteration) {
  int done = 0;
  int64_t next = warmup_of(s);  // the first iteration that may do a step
  for (; done < s.stepvalue_size(); ++done) {
    const int64_t at = std::max<int64_t>(next, s.stepvalue(done));
    if (at >= iteration) break;
    next = at + 1;
  }
  return done;
}

bool observe_score(const SolverParameter& solver, float score, RateState* state) {
  if (solver.lr_policy() != "stepearly") return false;
  if (score > state->best_score) {
    state->best_score = score;
    state->tests_without_better = 0;
    return false;
  }
  if (++state->tests_without_better < solver.stepearly()) return false;
  state->tests_without_better = 0;
  ++state->current_step;
  return true;
}

}  // namespace crema
