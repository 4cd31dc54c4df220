#include "exchange/c/update.h"

#include <set>
#include <vector>

#include "base/error.h"
#include "base/strings.h"
#include "exchange/c/operator_emit.h"

namespace crema {

namespace {

// Fields that are written, and those that leave the weights as they are.
const std::set<std::string> kKnown = {"type",
                                      "base_lr",
                                      "lr_policy",
                                      "gamma",
                                      "power",
                                      "stepsize",
                                      "stepvalue",
                                      "max_iter",
                                      "min_lr",
                                      "momentum",
                                      "momentum2",
                                      "delta",
                                      "weight_decay",
                                      "regularization_type",
                                      "random_seed",
                                      "freeze",
                                      "net",
                                      "net_param",
                                      "train_net",
                                      "train_net_param",
                                      "train_state",
                                      "weights",
                                      "test_net",
                                      "test_net_param",
                                      "test_state",
                                      "test_iter",
                                      "test_interval",
                                      "test_epoch",
                                      "test_interval_epoch",
                                      "test_compute_loss",
                                      "test_initialization",
                                      "display",
                                      "average_loss",
                                      "epoch_log",
                                      "snapshot",
                                      "snapshot_epoch",
                                      "snapshot_prefix",
                                      "snapshot_diff",
                                      "snapshot_format",
                                      "snapshot_minutes",
                                      "snapshot_after_train",
                                      "snapshot_include_weights",
                                      "snapshot_include_state",
                                      "keep_last",
                                      "keep_every",
                                      "keep_best",
                                      "max_minutes",
                                      "early_stop",
                                      "ema_decay",
                                      "test_ema",
                                      "solver_mode",
                                      "device_id",
                                      "debug_info",
                                      "solver_type",
                                      "layer_wise_reduce",
                                      "on_divergence",
                                      "rollback_factor",
                                      "rollback_most",
                                      "skip_most"};

// Whether the field has its default, though the file names it.
bool is_default(const SolverParameter& solver, const google::protobuf::FieldDescriptor* field) {
  SolverParameter cleared = solver;
  const auto* const reflection = SolverParameter::GetReflection();
  reflection->ClearField(&cleared, field);
  using Field = google::protobuf::FieldDescriptor;
  if (field->is_repeated()) return false;
  switch (field->cpp_type()) {
    case Field::CPPTYPE_INT32:
      return reflection->GetInt32(solver, field) == reflection->GetInt32(cleared, field);
    case Field::CPPTYPE_FLOAT:
      return reflection->GetFloat(solver, field) == reflection->GetFloat(cleared, field);
    case Field::CPPTYPE_BOOL:
      return reflection->GetBool(solver, field) == reflection->GetBool(cleared, field);
    case Field::CPPTYPE_STRING:
      return reflection->GetString(solver, field) == reflection->GetString(cleared, field);
    default:
      return false;
  }
}

void check_fields(const SolverParameter& solver) {
  std::vector<const google::protobuf::FieldDescriptor*> set;
  SolverParameter::GetReflection()->ListFields(solver, &set);
  for (const auto* const field : set)
    require(kKnown.count(field->name()) > 0 || is_default(solver, field), "the solver's field ",
            field->name(), " is not written as C; remove it, or train with `crema train`");
}

// "0.01f * powf(0.1f, ...)", as in solver/rates.
std::string rate_text(const SolverParameter& s) {
  const std::string& policy = s.lr_policy();
  const std::string base = c_float(s.base_lr()), gamma = c_float(s.gamma());
  const std::string power = c_float(s.power());
  const auto after = [&](const std::string& steps) {
    return cat("(float)(", base, " * pow(", gamma, ", ", steps, "))");
  };
  require(policy != "step" || s.stepsize() > 0, "stepsize is ", s.stepsize(),
          ": lr_policy \"step\" needs a positive number of iterations");
  require(policy != "poly" || s.max_iter() > 0, "max_iter is ", s.max_iter(),
          ": lr_policy \"poly\" needs a positive number of iterations");
  if (policy == "fixed") return base;
  if (policy == "step") return after(cat("iteration / ", s.stepsize()));
  if (policy == "exp") return after("iteration");
  if (policy == "inv")
    return cat(base, " * powf(1 + ", gamma, " * (float)iteration, ", c_float(-s.power()), ")");
  if (policy == "multistep") {
    std::string steps;
    for (const int32_t value : s.stepvalue())
      steps += cat(steps.empty() ? "(" : " + (", "iteration >= ", value, ")");
    return after(steps.empty() ? "0" : steps);
  }
  if (policy == "poly")
    return cat("(", base, " - ", c_float(s.min_lr()), ") * powf(1 - (float)iteration / ",
               c_float(static_cast<float>(s.max_iter())), ", ", power, ") + ", c_float(s.min_lr()));
  if (policy == "sigmoid")
    return cat(base, " / (1 + expf(", c_float(-s.gamma()), " * (float)(iteration - ", s.stepsize(),
               ")))");
  fail("lr_policy \"", policy,
       "\" is not written as C, only fixed, step, exp, inv, multistep, poly and sigmoid");
}

}  // namespace

CUpdate read_c_update(const SolverParameter& solver) {
  check_fields(solver);
  require(solver.has_base_lr(),
          "base_lr is missing in the solver: the learning rate to start from");
  require(solver.type() == "SGD" || solver.type() == "Adam", "the solver's type \"", solver.type(),
          "\" is not written as C, only SGD and Adam");
  const std::string& decay = solver.regularization_type();
  require(decay == "L2" || decay == "L1" || decay == "NONE", "regularization_type \"", decay,
          "\" is not written as C, only L2, L1 and NONE");
  CUpdate update;
  update.adam = solver.type() == "Adam";
  update.momentum = solver.momentum();
  update.momentum2 = solver.momentum2();
  update.delta = solver.delta();
  update.decay = decay == "NONE" ? 0 : solver.weight_decay();
  update.l1 = decay == "L1";
  update.seed = static_cast<uint64_t>(std::max<int64_t>(solver.random_seed(), 0));
  update.rate = rate_text(solver);
  if (solver.has_min_lr())
    update.rate = cat("fmaxf(", update.rate, ", ", c_float(solver.min_lr()), ")");
  return update;
}

}  // namespace crema
