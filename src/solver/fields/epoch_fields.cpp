#include "solver/fields/epoch_fields.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/error.h"

namespace crema {
namespace {

struct EpochField {
  const char *epochs, *iterations;
};

constexpr EpochField kEpochFields[] = {
    {"max_epoch", "max_iter"},
    {"test_interval_epoch", "test_interval"},
    {"snapshot_epoch", "snapshot"},
    {"stepsize_epoch", "stepsize"},
    {"stepvalue_epoch", "stepvalue"},
    {"warmup_epoch", "warmup_iter"},
    {"initial_momentum_epoch", "initial_momentum_iter"},
};

// Divisions of whole numbers by each other may end just below a whole number.
constexpr double kRounding = 1e-9;

const google::protobuf::FieldDescriptor* descriptor_of(const std::string& name) {
  return SolverParameter::descriptor()->FindFieldByName(name);
}

// How often a field is given; once at most unless it is repeated.
int times(const SolverParameter& solver, const std::string& name) {
  const auto* field = descriptor_of(name);
  const auto* reflection = solver.GetReflection();
  if (field->is_repeated()) return reflection->FieldSize(solver, field);
  return reflection->HasField(solver, field) ? 1 : 0;
}

float epochs_in(const SolverParameter& solver, const std::string& name, int index) {
  const auto* field = descriptor_of(name);
  const auto* reflection = solver.GetReflection();
  return field->is_repeated() ? reflection->GetRepeatedFloat(solver, field, index)
                              : reflection->GetFloat(solver, field);
}

// 0 is what a field says that is not given; in a list it is an epoch.
bool counts_epochs(const SolverParameter& solver, const std::string& name) {
  const int count = times(solver, name);
  return count > 0 && (descriptor_of(name)->is_repeated() || epochs_in(solver, name, 0) != 0);
}

void set_iterations(SolverParameter* solver, const std::string& name, int value) {
  const auto* field = descriptor_of(name);
  const auto* reflection = solver->GetReflection();
  if (field->is_repeated()) return reflection->AddInt32(solver, field, value);
  reflection->SetInt32(solver, field, value);
}

std::string shortest(float value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

// 0.1 of a file is not the float next to it.
double as_written(float value) { return std::strtod(shortest(value).c_str(), nullptr); }

const EpochField* epoch_field_of(const std::string& iterations) {
  for (const EpochField& field : kEpochFields) {
    if (iterations == field.iterations) return &field;
  }
  return nullptr;
}

// "stepvalue[1]": its name and number.
std::pair<std::string, std::string> split_index(const std::string& field) {
  const size_t bracket = field.find('[');
  if (bracket == field.npos) return {field, ""};
  return {field.substr(0, bracket), field.substr(bracket)};
}

}  // namespace

double EpochLength::updates(float epochs) const {
  return as_written(epochs) * static_cast<double>(records) / static_cast<double>(per_update);
}

int64_t EpochLength::updates_to_complete(float epochs) const {
  const double exact = updates(epochs) * (1 - 1e-13) - kRounding;
  return static_cast<int64_t>(std::min(9e18, std::ceil(exact)));
}

EpochLength epoch_length(const Net& net, int iter_size, bool may_read) {
  for (const auto& [node, source] : sources_of(net.graph())) {
    const int64_t records = may_read ? source.count_records() : source.records();
    if (records <= 0) continue;
    const int64_t batch = net.graph().values[node.tops[0]].shape[0];
    const int64_t of_ranks = source.share().all;
    return {records, (of_ranks > 0 ? of_ranks : batch) * iter_size};
  }
  return {};
}

std::string given_field(const SolverParameter& solver, const std::string& field) {
  const auto [name, index] = split_index(field);
  const EpochField* const found = epoch_field_of(name);
  return found && counts_epochs(solver, found->epochs) ? found->epochs + index : field;
}

std::string given_value(const SolverParameter& solver, const std::string& field) {
  const auto [name, index] = split_index(field);
  const EpochField* const found = epoch_field_of(name);
  const int number = index.empty() ? 0 : std::atoi(index.c_str() + 1);
  if (found && counts_epochs(solver, found->epochs))
    return shortest(epochs_in(solver, found->epochs, number));
  const auto* descriptor = descriptor_of(name);
  const auto* reflection = solver.GetReflection();
  return cat(descriptor->is_repeated() ? reflection->GetRepeatedInt32(solver, descriptor, number)
                                       : reflection->GetInt32(solver, descriptor));
}

std::string first_epoch_field(const SolverParameter& solver) {
  for (const EpochField& field : kEpochFields) {
    if (counts_epochs(solver, field.epochs)) return field.epochs;
  }
  return "";
}

void check_epoch_fields(const SolverFile& file) {
  const SolverParameter& solver = file.solver;
  for (const EpochField& field : kEpochFields) {
    for (int i = 0; i < times(solver, field.epochs); ++i) {
      const float epochs = epochs_in(solver, field.epochs, i);
      const bool repeated = descriptor_of(field.epochs)->is_repeated();
      require(epochs >= 0, file.where(repeated ? cat(field.epochs, "[", i, "]") : field.epochs),
              ": ", field.epochs, " is ", epochs, ", but must be a number of epochs, at least 0");
    }
    if (!counts_epochs(solver, field.epochs) || times(solver, field.iterations) == 0) continue;
    // What the file does not have comes from the command line.
    const std::string place = file.where(field.iterations), none = file.where("");
    fail(file.where(field.epochs), ": ", field.epochs, " is given together with ", field.iterations,
         " (", place == none ? "by -set" : place,
         "): both say the same, in epochs and in iterations; keep one of them",
         place == none ? cat(", as -set ", field.epochs, "=0 does") : "");
  }
}

std::string count_in_iterations(const EpochLength& length, SolverFile* file) {
  SolverParameter& solver = file->solver;
  const std::string first = first_epoch_field(solver);
  if (first.empty()) return "";
  require(length.records > 0, file->where(first), ": ", first,
          " counts epochs of the training data, but no source of the training net knows how many "
          "records it has, as databases, HDF5 files and lists do: count iterations instead");
  std::string said =
      cat("An epoch has ", length.records, " records, an iteration reads ", length.per_update, ":");
  for (const EpochField& field : kEpochFields) {
    if (!counts_epochs(solver, field.epochs)) continue;
    for (int i = 0; i < times(solver, field.epochs); ++i) {
      const float epochs = epochs_in(solver, field.epochs, i);
      const int64_t updates = length.updates_to_complete(epochs);
      require(updates <= std::numeric_limits<int>::max(), file->where(field.epochs), ": ",
              field.epochs, " is ", shortest(epochs), ", which would be ", updates,
              " iterations, but there can be at most ", std::numeric_limits<int>::max());
      set_iterations(&solver, field.iterations, static_cast<int>(updates));
      said += cat(said.back() == ':' ? " " : ", ", field.epochs, " ", shortest(epochs), " is ",
                  field.iterations, " ", updates);
    }
  }
  return said;
}

bool falls_due(int64_t updates, int interval, float epochs, const EpochLength& length) {
  if (epochs <= 0) return interval > 0 && updates % interval == 0;
  if (updates == 0) return true;
  const double exact = length.updates(epochs);
  const auto multiples = [exact](int64_t after) {
    return std::floor(static_cast<double>(after) / exact * (1 + 1e-14) + kRounding);
  };
  return multiples(updates) > multiples(updates - 1);
}

}  // namespace crema
