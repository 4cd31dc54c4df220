#include "solver/rates/schedules.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "net/prototxt/prototxt.h"
#include "solver/fields/field_ranges.h"

namespace crema {
namespace {

const std::vector<std::string> kRegularizations = {"L2", "L1", "decoupled", "NONE"};

void check_name(const char* field, const std::string& name, const std::vector<std::string>& names) {
  require(std::find(names.begin(), names.end(), name) != names.end(), "unknown ", field, " \"",
          name, "\"", did_you_mean(name, names), "; the types are ", join(names, ", "));
}

float base_momentum(const SolverParameter& s, const RuleTraits& rule) {
  return s.has_momentum() ? s.momentum() : rule.momentum;
}

// From `start` at iteration 0 to `end` at max_iter.
float momentum_between(float start, float end, float power, int64_t iteration, int max_iter) {
  const float done = static_cast<float>(iteration) / static_cast<float>(max_iter);
  return start + (end - start) * std::pow(done, power);
}

float momentum_at(const SolverParameter& s, const RuleTraits& rule, int64_t iteration,
                  double rate) {
  const float base = base_momentum(s, rule);
  if (s.momentum_policy() == "step")
    return iteration < s.initial_momentum_iter() ? s.initial_momentum() : base;
  if (s.momentum_policy() == "poly")
    return momentum_between(base, s.max_momentum(), s.momentum_power(), iteration, s.max_iter());
  if (s.momentum_policy() != "opt") return base;
  const double root = 1 - 0.5 * std::sqrt(rate);
  const auto momentum = static_cast<float>(root * root);
  return s.has_max_momentum() ? std::min(momentum, s.max_momentum()) : momentum;
}

float weight_decay_at(const SolverParameter& s, int64_t iteration) {
  if (s.weight_decay_policy() != "poly") return s.weight_decay();
  return momentum_between(s.weight_decay(), s.max_weight_decay(), s.weight_decay_power(), iteration,
                          s.max_iter());
}

void check_policies(const SolverParameter& s) {
  check_name("regularization_type", s.regularization_type(), kRegularizations);
  check_name("momentum_policy", s.momentum_policy(), {"fixed", "step", "poly", "opt"});
  check_name("weight_decay_policy", s.weight_decay_policy(), {"fixed", "poly"});
  const bool to_the_end = s.momentum_policy() == "poly" || s.weight_decay_policy() == "poly";
  require(!to_the_end || s.max_iter() > 0, "momentum_policy and weight_decay_policy \"poly\" need ",
          "max_iter, which is missing in the solver");
  const bool begins = s.momentum_policy() == "step";
  const float initial = s.initial_momentum();
  require(!begins || (initial >= 0 && initial < 1), "initial_momentum is ", initial,
          ", it must be at least 0 and less than 1");
  const char* const unread = s.has_initial_momentum()         ? "initial_momentum"
                             : s.has_initial_momentum_iter()  ? "initial_momentum_iter"
                             : s.has_initial_momentum_epoch() ? "initial_momentum_epoch"
                                                              : nullptr;
  require(begins || !unread, unread ? unread : "", " is set, but momentum_policy is \"",
          s.momentum_policy(), "\": choose \"step\", which begins with it");
  const bool ends = s.has_initial_momentum_iter() || s.has_initial_momentum_epoch();
  require(!begins || ends, "momentum_policy \"step\" needs initial_momentum_iter or ",
          "initial_momentum_epoch: how long does it keep initial_momentum?");
  require(s.momentum_policy() != "opt" || s.lr_policy() != "plateau",
          "momentum_policy \"opt\" follows a rate that is known ahead, but lr_policy is "
          "\"plateau\": choose another of the two");
}

void check_factors(const SolverParameter& s, const RuleTraits& rule) {
  check_name("larc_policy", s.larc_policy(), {"scale", "clip"});
  const bool by_norms = s.larc() || s.local_lr_auto();
  require(!s.larc() || !s.local_lr_auto(),
          "larc and local_lr_auto are both true: both choose the blobs' rates; keep one of them");
  require(!by_norms || rule.scope == RuleTraits::Scope::element,
          s.larc() ? "larc" : "local_lr_auto", " does not go with type \"", s.type(),
          "\", which takes the size of its steps from norms already");
}

void check_own_fields(const SolverParameter& s, const RuleTraits& rule) {
  check_name("muon_scale", s.muon_scale(), {"adam", "none"});
  check_name("muon_others", s.muon_others(), {"AdamW", "Nesterov"});
  require(s.muon_steps() >= 1, "muon_steps is ", s.muon_steps(), ", it must be at least 1");
  const float others = s.muon_others_momentum();
  require(others >= 0 && others < 1, "muon_others_momentum is ", others,
          ", it must be at least 0 and less than 1");
  for (const RuleTraits& other : update_rules()) {
    if (&other == &rule) continue;
    for (const std::string& field : other.own_fields)
      require(!is_set(s, field), field, " is set, but type is \"", s.type(),
              "\": remove it, or choose \"", other.name, "\"");
  }
}

// RAdam (Liu et al., 2020), as in the fork: while too few gradients have been seen for a second
// moment, steps use the first moment alone; then they grow with the number seen.
void rectify(double momentum2, int64_t iteration, Hyperparameters& at) {
  const double t = static_cast<double>(iteration) + 1, power = std::pow(momentum2, t);
  const double maximum = 2 / (1 - momentum2) - 1, known = maximum - 2 * t * power / (1 - power);
  at.divides = known > 4;
  if (!at.divides) return;
  at.correction *= static_cast<float>(
      std::sqrt((known - 4) * (known - 2) * maximum / ((maximum - 4) * (maximum - 2) * known)));
}

}  // namespace

void check_schedules(const SolverParameter& s, const RuleTraits& rule) {
  check_policies(s);
  check_factors(s, rule);
  check_own_fields(s, rule);
  require(rule.reads("momentum") || s.momentum() == 0, "momentum is ", s.momentum(),
          ", but type \"", s.type(),
          "\" has no momentum: remove "
          "it, or choose \"Adam\"");
  require(!rule.decoupled || s.regularization_type() != "L1",
          "regularization_type is \"L1\", but type \"", s.type(),
          "\" has a weight decay that is no part of the gradient: remove it");
  const auto decays = [&](const char* field, float value) {
    require(value >= 0 && value < 1, field, " is ", value, ": type \"", s.type(),
            "\" needs at least 0 and less than 1");
  };
  const auto only_adam = [&](bool given, const char* field) {
    require(!given || rule.reads(field), field, " is true, but type \"", s.type(), "\" is neither ",
            join(rules_that_read(field), " nor "), ": remove it, or choose one of these");
  };
  only_adam(s.amsgrad(), "amsgrad");
  only_adam(s.rectified(), "rectified");
  only_adam(s.adabelief(), "adabelief");
  require(!s.lookahead() ||
              (s.lookahead_steps() > 0 && s.lookahead_alpha() > 0 && s.lookahead_alpha() <= 1),
          "lookahead_steps is ", s.lookahead_steps(), " and lookahead_alpha ", s.lookahead_alpha(),
          ", but slow weights need at least one step, and a length above 0 and at most 1");
  if (rule.reads("rms_decay")) decays("rms_decay", s.rms_decay());
  if (rule.reads("momentum2")) decays("momentum2", s.momentum2());
  require(s.ema_decay() >= 0 && s.ema_decay() < 1, "ema_decay is ", s.ema_decay(),
          ": it must be at least 0 and less than 1, for example 0.999");
  require(!s.test_ema() || s.ema_decay() > 0,
          "test_ema is true, but no average is kept: set ema_decay, for example 0.999");
}

void check_momentum(const SolverFile& file, Log& log) {
  const SolverParameter& s = file.solver;
  const RuleTraits& rule = update_rule(s.type());
  if (!rule.reads("momentum2") || rule.momentum > 0 || s.has_momentum()) return;
  if (s.momentum_policy() != "fixed" && s.momentum_policy() != "step") return;  // these give one
  std::string place = file.where("type");
  if (place == file.where("")) place = file.where("solver_type");
  log.warning(cat(place, ": type is \"", s.type(),
                  "\", but momentum is missing: it is 0, as in Caffe; the authors of Adam suggest "
                  "momentum: 0.9"));
}

float momentum2_of(const SolverParameter& s, const RuleTraits& rule) {
  return s.has_momentum2() ? s.momentum2() : rule.momentum2;
}

Hyperparameters hyperparameters_at(const SolverParameter& s, const RuleTraits& rule,
                                   int64_t iteration, double rate) {
  Hyperparameters at;
  at.rate = static_cast<float>(rate);
  at.momentum = momentum_at(s, rule, iteration, rate);
  at.others_momentum = s.has_muon_others_momentum() ? s.muon_others_momentum() : at.momentum;
  at.correction = bias_correction(rule, at.others_momentum, momentum2_of(s, rule), iteration);
  if (s.rectified()) rectify(momentum2_of(s, rule), iteration, at);
  if (s.regularization_type() == "NONE") return at;
  const bool both = rule.reads("adamw_decay") && s.has_adamw_decay();
  const bool decoupled = !both && (rule.decoupled || s.regularization_type() == "decoupled");
  const float decay = weight_decay_at(s, iteration);
  (decoupled ? at.shrink : at.penalty) = decay;
  if (both) at.shrink = s.adamw_decay();
  return at;
}

MuonOptions muon_options(const SolverParameter& s, Precision precision) {
  MuonOptions options;
  options.steps = s.muon_steps();
  options.adam_scale = s.muon_scale() == "adam";
  options.normalizes = s.muon_normalize();
  options.nesterov_others = s.muon_others() == "Nesterov";
  options.precision = precision == Precision::fp32 ? Precision::fp32 : Precision::tf32;
  return options;
}

FactorRules factor_rules(const SolverParameter& s) {
  FactorRules rules;
  rules.clip_blob = s.clip_gradients_blob();
  rules.clip_layer = s.clip_gradients_layer();
  if (s.larc()) {
    rules.rates = FactorRules::Rates::larc;
    rules.clip_rate = s.larc_policy() == "clip";
    rules.turbo = s.larc_turbo();
    rules.eta = s.larc_eta();
  } else if (s.local_lr_auto()) {
    rules.rates = FactorRules::Rates::lars;
    rules.eta = s.local_gw_ratio();
  }
  return rules;
}

}  // namespace crema
