#include "solver/fields/recorded_recipe.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "data/lists/message_text.h"
#include "kernels/optim/update_rule.h"
#include "proto/solver.pb.h"

namespace crema {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;

// What does not change an update: the nets (their fingerprint is compared), tests, logs, files, and
// where the training runs.
bool is_recorded(const FieldDescriptor& field) {
  static const std::set<std::string> others = {"display",
                                               "epoch_log",
                                               "snapshot",
                                               "snapshot_epoch",
                                               "keep_best",
                                               "keep_last",
                                               "keep_every",
                                               "max_minutes",
                                               "early_stop",
                                               "solver_mode",
                                               "solver_type",
                                               "device_id",
                                               "debug_info",
                                               "weights",
                                               "layer_wise_reduce",
                                               "on_divergence",
                                               "rollback_factor",
                                               "rollback_most",
                                               "skip_most",
                                               "eval_type",
                                               "ap_version",
                                               "show_per_class_result",
                                               "enable_clip_gradient_status"};
  const std::string name(field.name());
  const auto starts = [&](const char* start) { return name.rfind(start, 0) == 0; };
  if (starts("test_") || starts("train_") || starts("snapshot_") || starts("net")) return false;
  if (others.count(name) > 0) return false;
  return !field.options().HasExtension(no_effect);
}

// Fields that an epoch's length turns into iterations follow from the others.
void keep_epochs(SolverParameter* solver) {
  if (solver->max_epoch() > 0) solver->clear_max_iter();
  if (solver->stepsize_epoch() > 0) solver->clear_stepsize();
  if (solver->stepvalue_epoch_size() > 0) solver->clear_stepvalue();
  if (solver->warmup_epoch() > 0) solver->clear_warmup_iter();
}

// What a training is prolonged by is a change of the schedule only where the rate depends on it.
bool depends_on_end(const SolverParameter& solver) {
  const std::string& policy = solver.lr_policy();
  return policy == "poly" || policy == "cosine" || policy == "onecycle" ||
         (policy == "sgdr" && solver.period() <= 0) || solver.momentum_policy() == "poly" ||
         solver.weight_decay_policy() == "poly";
}

SolverParameter parse(const std::string& recipe) {
  SolverParameter solver;
  parse_message(recipe, &solver, UnknownFields::are_ignored);  // those of a later version
  return solver;
}

// "4, 8"; the default where the field is not given.
std::string value_of(const SolverParameter& solver, const FieldDescriptor& field) {
  std::string text;
  if (!field.is_repeated()) {
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
        !solver.GetReflection()->HasField(solver, &field))
      return "not given";
    TextFormat::PrintFieldValueToString(solver, &field, -1, &text);
    return text;
  }
  const int count = solver.GetReflection()->FieldSize(solver, &field);
  for (int i = 0; i < count; ++i) {
    std::string one;
    TextFormat::PrintFieldValueToString(solver, &field, i, &one);
    text += (i > 0 ? ", " : "") + one;
  }
  return count == 0 ? "not given" : text;
}

}  // namespace

std::string recorded_recipe(const SolverParameter& solver) {
  SolverParameter kept = solver;
  keep_epochs(&kept);
  const auto* descriptor = SolverParameter::descriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    if (!is_recorded(*descriptor->field(i)))
      SolverParameter::GetReflection()->ClearField(&kept, descriptor->field(i));
  }
  TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  printer.PrintToString(kept, &text);
  return text;
}

std::vector<std::string> changes_since(const std::string& recipe, const SolverParameter& solver) {
  std::vector<std::string> changes;
  if (recipe.empty()) return changes;
  const SolverParameter before = parse(recipe);
  SolverParameter now = solver;
  keep_epochs(&now);
  const auto* descriptor = SolverParameter::descriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor& field = *descriptor->field(i);
    if (!is_recorded(field)) continue;
    if ((field.name() == "max_iter" || field.name() == "max_epoch") &&
        !(depends_on_end(before) && depends_on_end(now)))
      continue;
    const std::string was = value_of(before, field), is = value_of(now, field);
    if (was != is) changes.push_back(cat(field.name(), " was ", was, " and is ", is));
  }
  std::sort(changes.begin(), changes.end());
  return changes;
}

void use_recipe(const std::string& recipe, SolverParameter* solver) {
  const auto* descriptor = SolverParameter::descriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    if (is_recorded(*descriptor->field(i)))
      SolverParameter::GetReflection()->ClearField(solver, descriptor->field(i));
  }
  solver->MergeFrom(parse(recipe));
}

void check_same_history(const std::string& recipe, const SolverParameter& solver,
                        const std::string& path) {
  if (recipe.empty()) return;
  const std::string before = parse(recipe).type();
  const std::string kept = update_rule(before).history;
  require(kept == update_rule(solver.type()).history, path, ": its history was kept by type \"",
          before, "\" and means something else to type \"", solver.type(),
          "\": resume with type: \"", before,
          "\", or start a new run from its weights with -weights");
}

std::string recorded_policy(const std::string& recipe) {
  return recipe.empty() ? "" : parse(recipe).lr_policy();
}

}  // namespace crema
