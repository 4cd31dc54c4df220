// Checks of a solver's fields: those that the learning-rate policy does not read, what never
// happens before max_iter, rates far from what the update rule takes.
#include <algorithm>

#include "kernels/optim/update_rule.h"
#include "solver/check/check.h"
#include "solver/fields/epoch_fields.h"
#include "solver/fields/field_ranges.h"
#include "solver/rates/learning_rate.h"

namespace crema {
namespace {

struct PolicyField {
  const char* name;
  std::vector<const char*> policies;  // that read it
};

const std::vector<PolicyField>& policy_fields() {
  static const std::vector<PolicyField> all = {
      {"gamma", {"step", "exp", "inv", "multistep", "sigmoid", "stepearly", "plateau"}},
      {"power", {"inv", "poly"}},
      {"stepsize", {"step", "sigmoid"}},
      {"stepvalue", {"multistep"}},
      {"stagelr", {"multifixed"}},
      {"stageiter", {"multifixed"}},
      {"vstep_lr", {"vstep"}},
      {"vstep_size", {"vstep"}},
      {"stepearly", {"stepearly"}},
      {"plateau_winsize", {"plateau"}},
      {"plateau_test", {"plateau"}},
      {"period", {"sgdr"}},
      {"p_mult", {"sgdr"}},
      {"lr_mult", {"sgdr"}},
      {"onecycle_rise", {"onecycle"}},
      {"onecycle_start_lr", {"onecycle"}},
      {"onecycle_final_lr", {"onecycle"}},
  };
  return all;
}

void check_policy_fields(const SolverFile& file, Findings* findings) {
  const SolverParameter& s = file.solver;
  for (const PolicyField& field : policy_fields()) {
    if (!is_set(s, field.name)) continue;
    const auto reads = [&](const char* policy) { return s.lr_policy() == policy; };
    if (std::any_of(field.policies.begin(), field.policies.end(), reads)) continue;
    const std::string given = given_field(s, field.name);
    add(findings, Severity::warning, file.where(given), given, " has no effect under lr_policy \"",
        s.lr_policy(), "\": it belongs to ",
        join({field.policies.begin(), field.policies.end()}, ", "), "; remove it, or choose ",
        field.policies.size() == 1 ? "that" : "one of these");
  }
}

void check_clipping(const SolverFile& file, Findings* findings) {
  const SolverParameter& s = file.solver;
  for (const char* name :
       {"clip_gradients", "clip_gradients_value", "clip_gradients_blob", "clip_gradients_layer"}) {
    const auto* field = SolverParameter::descriptor()->FindFieldByName(name);
    if (!is_set(s, name) || SolverParameter::GetReflection()->GetFloat(s, field) != 0) continue;
    add(findings, Severity::warning, file.where(name), name,
        " is 0: every gradient is cut to nothing; remove it, or give the largest norm");
  }
}

// A test needs both: how often, and how long it is.
void check_tests(const SolverFile& file, Findings* findings) {
  const SolverParameter& s = file.solver;
  if (s.test_interval() <= 0 || s.test_epoch() || s.test_iter_size() > 0) return;
  if (s.test_net_size() + s.test_net_param_size() > 0) return;  // an error
  const std::string given = given_field(s, "test_interval");
  add(findings, Severity::warning, file.where(given), given, " is ",
      given_value(s, "test_interval"),
      ", but there is neither test_iter nor test_epoch, so nothing is ever tested: add "
      "test_epoch: true, or the batches of a test, for example test_iter: 100");
}

// What is due after the last iteration, or never.
void check_intervals(const SolverFile& file, Findings* findings) {
  const SolverParameter& s = file.solver;
  const auto never = [&](const std::string& field, const std::string& what) {
    const std::string given = given_field(s, field);
    add(findings, Severity::warning, file.where(given), given, " is ", given_value(s, field),
        ", but ", given_field(s, "max_iter"), " is ", given_value(s, "max_iter"), ": ", what);
  };
  if (s.max_iter() <= 0) {
    add(findings, Severity::warning, file.where("max_iter"), "max_iter is ",
        s.has_max_iter() ? cat(s.max_iter()) : "missing",
        ": the training ends before its first iteration; say how many it has, for example "
        "max_iter: 10000, or max_epoch: 10");
    return;
  }
  if ((s.test_iter_size() > 0 || s.test_epoch()) && s.test_interval() > s.max_iter())
    never("test_interval", s.test_initialization()
                               ? "the only test is the one before the first iteration"
                               : "there is no test");
  if (s.lr_policy() == "step" && s.stepsize() >= s.max_iter() && s.gamma() != 1)
    never("stepsize", "the rate never falls; lower it, or write lr_policy: \"fixed\"");
  for (int i = 0; s.lr_policy() == "multistep" && i < s.stepvalue_size(); ++i) {
    if (s.stepvalue(i) >= s.max_iter())
      never(cat("stepvalue[", i, "]"), "this step is never reached");
    if (i > 0 && s.stepvalue(i) <= s.stepvalue(i - 1)) {
      const std::string field = cat("stepvalue[", i, "]");
      add(findings, Severity::warning, file.where(given_field(s, field)),
          given_field(s, "stepvalue"), " ", given_value(s, field), " comes after ",
          given_value(s, cat("stepvalue[", i - 1, "]")),
          ": the rate falls right after the other; sort them");
    }
  }
  if (s.snapshot_after_train() || s.snapshot_minutes() > 0) return;
  if (s.snapshot() > s.max_iter())
    never("snapshot", "with snapshot_after_train: false no weights are ever written; lower it");
}

void check_rate(const SolverFile& file, bool sums_losses, Findings* findings) {
  const SolverParameter& s = file.solver;
  // Others decide the rate, or epsilon makes steps smaller.
  if (s.larc() || s.local_lr_auto() || s.delta() > 1e-3) return;
  if (s.lr_policy() == "multifixed" || s.lr_policy() == "vstep" || !(s.base_lr() > 0)) return;
  const RuleTraits& rule = update_rule(s.type());
  const bool low = s.base_lr()<rule.least_rate, high = s.base_lr()> rule.most_rate;
  if (!high && (!low || sums_losses)) return;
  add(findings, Severity::warning, file.where("base_lr"), "base_lr is ", s.base_lr(),
      ", which is far ", low ? "below" : "above", " what type \"", s.type(), "\" takes (usually ",
      rule.usual_rates,
      "): ", low ? "nothing will change" : "the loss will hardly fall, or be nan");
}

bool chooses_steps(const SolverParameter& s) {
  return s.lr_policy() == "plateau" || s.lr_policy() == "stepearly";
}

// What the schedule does to the rate in the course of the training.
void check_course(const SolverFile& file, bool compares_intervals, Findings* findings) {
  const SolverParameter& s = file.solver;
  const std::string& policy = s.lr_policy();
  const bool by_base = policy != "multifixed" && policy != "vstep";
  const int warmup = std::max(s.warmup_iter(), s.rampup_interval());
  if (by_base && s.has_base_lr() && s.base_lr() == 0 && s.min_lr() <= 0 &&
      !(s.has_max_iter() && warmup >= s.max_iter())) {
    add(findings, Severity::warning, file.where("base_lr"),
        "base_lr is 0: no weight changes, so nothing is learned; the usual rates are 0.001 to 0.1");
    return;
  }
  const bool falls =
      policy == "step" || policy == "multistep" || policy == "exp" || chooses_steps(s);
  if (falls && s.gamma() > 1)
    add(findings, Severity::warning, file.where("gamma"), "gamma is ", s.gamma(),
        ": the rate grows with each step; it is multiplied by gamma, so write 0.1 to divide it "
        "by 10");
  if (falls && s.has_gamma() && s.gamma() == 1)
    add(findings, Severity::info, file.where("gamma"),
        "gamma is 1: the rate never changes, which lr_policy: \"fixed\" says more plainly");
  if (falls && s.has_gamma() && s.gamma() <= 0)
    add(findings, Severity::warning, file.where("gamma"), "gamma is ", s.gamma(),
        s.gamma() == 0 ? ": after the first step the rate is 0 and nothing is learned"
                       : ": each step changes the sign of the rate",
        "; write 0.1 to divide it by 10");
  if (!compares_intervals || chooses_steps(s) || s.max_iter() <= 0 || s.gamma() <= 0 ||
      (by_base && !(s.base_lr() > 0)))
    return;
  // With the rate that is left nothing changes any more in float32.
  const auto rate_at = [&](int iteration) {
    RateState state = first_rate_state(s);
    state.current_step = multistep_before(s, iteration);
    return learning_rate(s, iteration, &state);
  };
  double most = 0;
  for (int tenth = 0; tenth < 10; ++tenth)
    most = std::max(most, rate_at(static_cast<int>(int64_t{s.max_iter()} * tenth / 10)));
  const int third = s.max_iter() / 3;
  if (policy == "poly" || policy == "cosine" || policy == "sigmoid" || third == 0 || most <= 0 ||
      rate_at(third) > most * 1e-9)
    return;
  int low = 0, high = third;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    rate_at(middle) > most * 1e-9 ? void(low = middle + 1) : void(high = middle);
  }
  add(findings, Severity::warning, file.where("lr_policy"), "with lr_policy \"", policy,
      "\" the rate falls below a billionth of its largest value in iteration ", low, " of ",
      s.max_iter(), ": nothing is learned from there on; ",
      policy == "exp" ? "gamma counts for each iteration, so write one close to 1, as 0.9999"
                      : "let it fall more slowly");
}

void check_decay(const SolverFile& file, Findings* findings) {
  const SolverParameter& s = file.solver;
  const bool decoupled = update_rule(s.type()).decoupled || s.regularization_type() == "decoupled";
  if (decoupled ? s.weight_decay() * s.base_lr() >= 0.1 : s.weight_decay() >= 0.5) {
    add(findings, Severity::warning, file.where("weight_decay"), "weight_decay is ",
        s.weight_decay(), decoupled ? cat(" with base_lr ", s.base_lr()) : "",
        ": it pulls all weights to 0 faster than a loss can push them; usual are ",
        decoupled ? "0.01 to 0.1" : "0.0001 to 0.005");
  }
}

void check_prefix(const SolverFile& file, Findings* findings) {
  const SolverParameter& s = file.solver;
  const size_t dot = file.path.rfind('.');
  if (s.snapshot() <= 0 || s.snapshot_prefix() != file.path.substr(0, dot)) return;
  if (file.where("snapshot_prefix") != file.where("")) return;  // it says so itself
  add(findings, Severity::info, file.where(given_field(s, "snapshot")),
      "snapshot_prefix is missing: snapshots are written next to the solver, as ",
      s.snapshot_prefix(), "_iter_", s.snapshot(),
      ".caffemodel; set it where another folder is meant");
}

}  // namespace

void check_solver_fields(const SolverFile& file, bool sums_losses, bool compares_intervals,
                         Findings* findings) {
  check_policy_fields(file, findings);
  check_clipping(file, findings);
  check_tests(file, findings);
  if (compares_intervals) check_intervals(file, findings);
  check_rate(file, sums_losses, findings);
  check_course(file, compares_intervals, findings);
  check_decay(file, findings);
  check_prefix(file, findings);
}

}  // namespace crema
