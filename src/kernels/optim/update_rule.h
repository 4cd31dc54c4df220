// RuleTraits: everything that the program knows about an update rule. A rule is a row in
// update_rules.cu and a functor in update_rules.h; the formulas are in kernels/optim/update.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace crema {

template <typename T>
struct RuleRun;

// Runs a rule over the parameters, for each type that these can have.
struct RulePasses {
  void (*f32)(const RuleRun<float>&);
  void (*f64)(const RuleRun<double>&);
};

struct RuleTraits {
  // What the new value of a weight depends on: its own gradient, the norms of its blob too, or its
  // whole blob, as a matrix.
  enum class Scope { element, blob_norms, matrix };

  const char* name;  // `type` of a solver
  RulePasses passes;
  int histories = 1;  // arenas of optimizer state
  // What these hold: rules with the same words can continue each other's snapshots.
  const char* history;
  Scope scope = Scope::element;
  bool decoupled = false;     // weight decay shrinks the weights and is never added to the gradient
  bool corrected = false;     // Adam's bias correction
  bool proportional = false;  // steps are as large as the gradient
  // What a solver's fields are where it does not set them.
  float momentum = 0, momentum2 = 0.999f;
  // base_lr between which runs are known to go well, with room on both sides; and what is usual.
  double least_rate = 0, most_rate = 0;
  const char* usual_rates = "";
  // Fields of a solver that this rule reads and not every rule does.
  std::vector<std::string> fields;
  // Those that are an error with another rule.
  std::vector<std::string> own_fields = {};

  bool reads(const std::string& field) const;
};

// By name ("SGD", "AdaGrad"...), case-insensitive; the Error suggests similar names. The reference is
// always valid.
const RuleTraits& update_rule(const std::string& name);
std::span<const RuleTraits> update_rules();
// "Adam", "AdamW": the rules that read a field.
std::vector<std::string> rules_that_read(const std::string& field);

// Adam's bias correction after `iteration` updates; 1 for rules that do not correct.
float bias_correction(const RuleTraits& rule, float momentum, float momentum2, int64_t iteration);

}  // namespace crema
