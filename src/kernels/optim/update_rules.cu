// The table of update rules.
#include "kernels/optim/update_rules.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/error.h"
#include "base/other_names.h"
#include "kernels/optim/rule_run.h"
#include "kernels/optim/update_rule.h"

namespace crema {
namespace {

// A rule that changes each element by itself: one pass with its functor.
template <template <typename> class Rule>
struct OnePass {
  template <typename T>
  static void run(const RuleRun<T>& run) {
    run.update(run.table, run.factors, run.last, Rule<T>{run.in});
  }
};

// The sums for LAMB's ratio: its step, weights.
template <typename T>
struct LambNorms {
  RuleOperands<T> in;
  CREMA_HD void add(int64_t i, SegmentSums* sums) const {
    const double step = Lamb<T>{in}.step(i), w = in.w[i];
    sums->add({step * step, w * w, 0, 0});
  }
};

struct LambPasses {
  template <typename T>
  static void run(const RuleRun<T>& run) {
    run.prepare(run.table, Moments<T>{run.in});
    sum_segments(run.context, run.table, LambNorms<T>{run.in}, run.norms, run.live);
    run.norms.decide_ratios(run.context, run.table, run.at, run.live);
    run.update(run.table, run.norms.factors(), run.last, Lamb<T>{run.in});
  }
};

// The sum for Muon's norms.
template <typename T>
struct WeightNorms {
  RuleOperands<T> in;
  CREMA_HD void add(int64_t i, SegmentSums* sums) const {
    const double w = in.w[i];
    sums->add({0, w * w, 0, 0});
  }
};

struct MuonPasses {
  template <typename T>
  static void run(const RuleRun<T>& run) {
    const ChunkTable &matrices = run.parts.matrices, &others = run.parts.others;
    const SegmentFactor* factors = run.factors;
    run.prepare(matrices, MuonMomentum<T>{run.in});
    if (run.parts.options.normalizes) {
      sum_segments(run.context, matrices, WeightNorms<T>{run.in}, run.norms, run.live);
      run.norms.decide_norms(run.context, matrices, run.at, run.live);
      factors = run.norms.factors();
    }
    run.parts.newton_schulz->run(run.context, run.second_history);
    RuleOperands<T> of_others = run.in;
    of_others.others = true;
    of_others.set_hyperparameters(run.at);
    if (run.parts.options.nesterov_others) {
      run.update(others, factors, false, Nesterov<T>{of_others});
    } else {
      run.update(others, factors, false, Adam<T>{of_others});
    }
    run.update(matrices, factors, run.last, Muon<T>{run.in});
  }
};

template <typename Passes>
constexpr RulePasses passes() {
  return {&Passes::template run<float>, &Passes::template run<double>};
}

const std::vector<RuleTraits>& rules() {
  using Scope = RuleTraits::Scope;
  static const std::vector<RuleTraits> all = {
      {.name = "SGD",
       .passes = passes<OnePass<Sgd>>(),
       .history = "the last step",
       .proportional = true,
       .least_rate = 1e-7,
       .most_rate = 20,
       .usual_rates = "0.001 to 0.1",
       .fields = {"momentum"}},
      {.name = "Nesterov",
       .passes = passes<OnePass<Nesterov>>(),
       .history = "the last step",
       .proportional = true,
       .least_rate = 1e-7,
       .most_rate = 20,
       .usual_rates = "0.001 to 0.1",
       .fields = {"momentum"}},
      {.name = "AdaGrad",
       .passes = passes<OnePass<AdaGrad>>(),
       .history = "the sum of squares",
       .least_rate = 1e-5,
       .most_rate = 2,
       .usual_rates = "0.001 to 0.1",
       .fields = {"delta"}},
      {.name = "RMSProp",
       .passes = passes<OnePass<RmsProp>>(),
       .history = "the mean of squares",
       .least_rate = 1e-7,
       .most_rate = 0.09,
       .usual_rates = "0.0001 to 0.01",
       .fields = {"delta", "rms_decay"}},
      {.name = "AdaDelta",
       .passes = passes<OnePass<AdaDelta>>(),
       .histories = 2,
       .history = "squares of gradients and of steps",
       .least_rate = 0.01,
       .most_rate = 20,
       .usual_rates = "1",
       .fields = {"momentum", "delta"}},
      {.name = "Adam",
       .passes = passes<OnePass<Adam>>(),
       .histories = 2,
       .history = "mean and mean of squares",
       .corrected = true,
       .least_rate = 1e-7,
       .most_rate = 0.04,
       .usual_rates = "0.0001 to 0.003",
       .fields = {"momentum", "momentum2", "delta", "amsgrad", "rectified", "adabelief"}},
      {.name = "AdamW",
       .passes = passes<OnePass<Adam>>(),
       .histories = 2,
       .history = "mean and mean of squares",
       .decoupled = true,
       .corrected = true,
       .momentum = 0.9f,
       .least_rate = 1e-7,
       .most_rate = 0.04,
       .usual_rates = "0.0001 to 0.003",
       .fields = {"momentum", "momentum2", "delta", "amsgrad", "rectified", "adabelief",
                  "adamw_decay"}},
      {.name = "LAMB",
       .passes = passes<LambPasses>(),
       .histories = 2,
       .history = "mean and mean of squares",
       .scope = Scope::blob_norms,
       .decoupled = true,
       .corrected = true,
       .momentum = 0.9f,
       .least_rate = 1e-6,
       .most_rate = 0.5,
       .usual_rates = "0.001 to 0.02",
       .fields = {"momentum", "momentum2", "delta"}},
      {.name = "Lion",
       .passes = passes<OnePass<Lion>>(),
       .history = "momentum",
       .decoupled = true,
       .momentum = 0.9f,
       .momentum2 = 0.99f,
       .least_rate = 1e-8,
       .most_rate = 0.01,
       .usual_rates = "0.00003 to 0.001",
       .fields = {"momentum", "momentum2"}},
      {.name = "Muon",
       .passes = passes<MuonPasses>(),
       .histories = 2,
       .history = "momentum and the last orthogonal step",
       .scope = Scope::matrix,
       .decoupled = true,
       .corrected = true,
       .momentum = 0.95f,
       .least_rate = 1e-6,
       .most_rate = 1,
       .usual_rates = "0.001 to 0.3",
       .fields = {"momentum", "momentum2", "delta"},
       .own_fields = {"muon_steps", "muon_scale", "muon_normalize", "muon_others",
                      "muon_others_momentum"}},
  };
  return all;
}

bool same_word(const std::string& a, const std::string& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

}  // namespace

bool RuleTraits::reads(const std::string& field) const {
  return std::find(fields.begin(), fields.end(), field) != fields.end();
}

std::span<const RuleTraits> update_rules() { return rules(); }

const RuleTraits& update_rule(const std::string& name) {
  std::vector<std::string> names;
  for (const RuleTraits& rule : rules()) {
    if (same_word(rule.name, name)) return rule;
    names.emplace_back(rule.name);
  }
  fail("unknown solver type \"", name, "\"", suggestion(Vocabulary::solvers, name, names),
       "; the types are ", join(names, ", "));
}

std::vector<std::string> rules_that_read(const std::string& field) {
  std::vector<std::string> names;
  for (const RuleTraits& rule : rules()) {
    if (rule.reads(field)) names.emplace_back(rule.name);
  }
  return names;
}

float bias_correction(const RuleTraits& rule, float momentum, float momentum2, int64_t iteration) {
  if (!rule.corrected) return 1;
  const double t = static_cast<double>(iteration) + 1;
  return static_cast<float>(std::sqrt(1 - std::pow(momentum2, t)) / (1 - std::pow(momentum, t)));
}

}  // namespace crema
