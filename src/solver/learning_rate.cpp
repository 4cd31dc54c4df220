#include "solver/learning_rate.h"

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "proto/solver.pb.h"

namespace crema {
namespace {

// Every policy rounds where Caffe rounds: powers of an integer exponent in double, all else in
// float.
using Rate = float (*)(const SolverParameter& solver, int iteration, int* current_step);

float fixed(const SolverParameter& s, int, int*) { return s.base_lr(); }

float step(const SolverParameter& s, int iteration, int* current_step) {
  *current_step = iteration / s.stepsize();
  return static_cast<float>(s.base_lr() * std::pow(s.gamma(), *current_step));
}

float exponential(const SolverParameter& s, int iteration, int*) {
  return static_cast<float>(s.base_lr() * std::pow(s.gamma(), iteration));
}

float inverse(const SolverParameter& s, int iteration, int*) {
  return s.base_lr() * std::pow(1.f + s.gamma() * static_cast<float>(iteration), -s.power());
}

float multistep(const SolverParameter& s, int iteration, int* current_step) {
  if (*current_step < s.stepvalue_size() && iteration >= s.stepvalue(*current_step))
    ++*current_step;
  return static_cast<float>(s.base_lr() * std::pow(s.gamma(), *current_step));
}

float polynomial(const SolverParameter& s, int iteration, int*) {
  const float done = static_cast<float>(iteration) / static_cast<float>(s.max_iter());
  return s.base_lr() * std::pow(1.f - done, s.power());
}

float sigmoid(const SolverParameter& s, int iteration, int*) {
  const float distance = static_cast<float>(iteration) - static_cast<float>(s.stepsize());
  return s.base_lr() * (1.f / (1.f + std::exp(-s.gamma() * distance)));
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
  };
  return all;
}

const Policy& policy_of(const SolverParameter& solver) {
  for (const Policy& policy : policies()) {
    if (solver.lr_policy() == policy.name) return policy;
  }
  std::vector<std::string> names;
  for (const Policy& policy : policies()) names.push_back(policy.name);
  require(solver.has_lr_policy(), "lr_policy is missing in the solver; the policies are ",
          join(names, ", "), ", for example lr_policy: \"fixed\"");
  fail("unknown lr_policy \"", solver.lr_policy(), "\"", did_you_mean(solver.lr_policy(), names),
       "; the policies are ", join(names, ", "));
}

bool is_set(const SolverParameter& solver, const std::string& field) {
  const auto* descriptor = SolverParameter::descriptor()->FindFieldByName(field);
  const auto* reflection = SolverParameter::GetReflection();
  return descriptor->is_repeated() ? reflection->FieldSize(solver, descriptor) > 0
                                   : reflection->HasField(solver, descriptor);
}

}  // namespace

void check_learning_rate(const SolverParameter& solver) {
  const Policy& policy = policy_of(solver);
  require(solver.has_base_lr(),
          "base_lr is missing in the solver: the learning rate to start from, for example "
          "base_lr: 0.01");
  for (const char* field : policy.needs) {
    require(is_set(solver, field), "lr_policy \"", policy.name, "\" needs ", field,
            ", which is missing in the solver");
  }
  const std::string name = policy.name;
  require(name != "step" || solver.stepsize() > 0, "stepsize is ", solver.stepsize(),
          ": lr_policy \"step\" needs a positive number of iterations");
  require(name != "poly" || solver.max_iter() > 0, "max_iter is ", solver.max_iter(),
          ": lr_policy \"poly\" needs a positive number of iterations");
}

double learning_rate(const SolverParameter& solver, int iteration, int* current_step) {
  return policy_of(solver).rate(solver, iteration, current_step);
}

}  // namespace crema
