#include "solver/compression/compression_fields.h"

#include "base/error.h"
#include "base/files.h"
#include "solver/fields/layer_patterns.h"

namespace crema {
namespace {

template <typename Value>
void require_field(const SolverFile& file, bool is_good, const char* block, const char* field,
                   const Value& found, const char* wanted) {
  require(is_good, file.where(cat(block, ".", field)), ": ", field, " is ", found, "; expected ",
          wanted);
}

void check_quantize(const SolverFile& file) {
  const QuantizeTraining& p = file.solver.quantize();
  const auto check = [&](bool is_good, const char* field, auto found, const char* wanted) {
    require_field(file, is_good, "quantize", field, found, wanted);
  };
  check(p.start() >= 0, "start", p.start(), "an iteration, 0 or more");
  check(p.bits() >= 2 && p.bits() <= 8, "bits", p.bits(), "2 to 8");
  check(p.decay() >= 0 && p.decay() <= 1, "decay", p.decay(), "0 to 1");
  ChosenLayers(file, "quantize");
}

void check_prune(const SolverFile& file) {
  const PruneTraining& p = file.solver.prune();
  const auto check = [&](bool is_good, const char* field, auto found, const char* wanted) {
    require_field(file, is_good, "prune", field, found, wanted);
  };
  check(p.sparsity() > 0 && p.sparsity() < 1, "sparsity", p.sparsity(),
        "a share above 0 and below 1");
  check(p.interval() > 0, "interval", p.interval(), "a number of iterations");
  check(p.start() >= 0, "start", p.start(), "an iteration, 0 or more");
  check(!p.has_end() || p.end() >= p.start(), "end", p.end(),
        "an iteration that is not before the start");
  ChosenLayers(file, "prune");
}

void check_teacher(const SolverFile& file, bool finds_weights) {
  const Teacher& p = file.solver.teacher();
  const auto at = [&](const char* field) { return file.where(cat("teacher.", field)); };
  require(p.has_net(), at("net"), ": teacher has no net: name its file, net: \"teacher.prototxt\"");
  require(p.has_weights(), at("net"),
          ": teacher has no weights: name their file, weights: \"teacher.caffemodel\"");
  require_field(file, p.temperature() > 0, "teacher", "temperature", p.temperature(),
                "a positive number");
  require_field(file, p.weight() >= 0 && p.weight() <= 1, "teacher", "weight", p.weight(),
                "0 to 1");
  require(file_exists(find_file(p.net(), folder_of(file.path))), at("net"), ": net \"", p.net(),
          "\" does not exist");
  const bool has_weights =
      !finds_weights || file_exists(find_file(p.weights(), folder_of(file.path)));
  require(has_weights, at("weights"), ": weights \"", p.weights(), "\" does not exist");
}

}  // namespace

void check_compression(const SolverFile& file, bool finds_weights) {
  if (file.solver.has_quantize()) check_quantize(file);
  if (file.solver.has_prune()) check_prune(file);
  if (file.solver.has_teacher()) check_teacher(file, finds_weights);
}

}  // namespace crema
