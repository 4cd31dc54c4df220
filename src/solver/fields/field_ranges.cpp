#include "solver/fields/field_ranges.h"

#include <google/protobuf/descriptor.h>

#include <cmath>
#include <limits>

namespace crema {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

struct Range {
  const char* name;
  double least = 0, most = kNoLimit;
  bool below_most = false;  // most itself is too much
  const char* advice = "";
};

// Fields that -1 or 0 switches off, and those of one update rule, are checked where they are used.
constexpr Range kRanges[] = {
    {"base_lr"},
    {"max_iter"},
    {"test_interval"},
    {"display"},
    {"average_loss", 1},
    {"iter_size", 1},
    {"snapshot"},
    {"delta"},
    {"momentum", 0, 1, true, "0.9 is usual"},
    {"max_momentum", 0, 1, false, "0.95 is usual"},
    {"weight_decay", 0, kNoLimit, false, "0.0005 is usual"},
    {"max_weight_decay"},
    {"adamw_decay"},
    {"stepvalue"},
    {"warmup_iter"},
    {"warmup_start_lr"},
    {"rampup_interval"},
    {"rampup_lr"},
    {"min_lr"},
    {"onecycle_start_lr"},
    {"onecycle_final_lr"},
    {"plateau_winsize", 1},
    {"stagelr"},
    {"stageiter"},
    {"vstep_lr"},
    {"vstep_size", 1},
    {"larc_eta"},
    {"local_gw_ratio"},
};

double number_of(const SolverParameter& solver, const google::protobuf::FieldDescriptor& field,
                 int index) {
  const auto* reflection = SolverParameter::GetReflection();
  const bool real = field.cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_FLOAT;
  if (field.is_repeated())
    return real ? reflection->GetRepeatedFloat(solver, &field, index)
                : reflection->GetRepeatedInt32(solver, &field, index);
  return real ? reflection->GetFloat(solver, &field) : reflection->GetInt32(solver, &field);
}

bool is_inside(const Range& range, double value) {
  return value >= range.least && (range.below_most ? value < range.most : value <= range.most);
}

std::string text_of(const Range& range, double value, bool real) {
  const auto shown = [&](double number) {
    return real ? cat(static_cast<float>(number)) : cat(static_cast<int64_t>(number));
  };
  std::string text = cat(range.name, " is ", shown(value), ", it must be at least ", range.least);
  if (range.most < kNoLimit)
    text += cat(" and ", range.below_most ? "less than " : "at most ", range.most);
  if (value < 0 && is_inside(range, -value))
    return cat(text, "; write ", range.name, ": ", shown(-value));
  return cat(text, *range.advice ? "; " : "", range.advice);
}

}  // namespace

bool is_set(const SolverParameter& solver, const std::string& field) {
  const auto* descriptor = SolverParameter::descriptor()->FindFieldByName(field);
  const auto* reflection = SolverParameter::GetReflection();
  return descriptor->is_repeated() ? reflection->FieldSize(solver, descriptor) > 0
                                   : reflection->HasField(solver, descriptor);
}

Findings out_of_range(const SolverFile& file) {
  Findings found;
  const SolverParameter& solver = file.solver;
  const auto* reflection = SolverParameter::GetReflection();
  for (const Range& range : kRanges) {
    const auto* field = SolverParameter::descriptor()->FindFieldByName(range.name);
    const bool list = field->is_repeated();
    const int count =
        list ? reflection->FieldSize(solver, field) : reflection->HasField(solver, field);
    for (int i = 0; i < count; ++i) {
      const double value = number_of(solver, *field, i);
      if (is_inside(range, value)) continue;
      add(&found, Severity::error, file.where(list ? cat(range.name, "[", i, "]") : range.name),
          text_of(range, value,
                  field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_FLOAT));
    }
  }
  return found;
}

std::string place_of_message(const SolverFile& file, const std::string& message,
                             const std::string& otherwise) {
  const std::string word = message.substr(0, message.find(' '));
  const std::string place = file.where(word);
  const bool known = SolverParameter::descriptor()->FindFieldByName(word) != nullptr;
  return known && place != file.where("") ? place : file.where(otherwise);
}

}  // namespace crema
