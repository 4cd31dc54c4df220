#include "tools/exchange/verify_c_training.h"

#include <cmath>
#include <filesystem>

#include "base/larger.h"
#include "base/visible.h"
#include "net/plan/plan.h"
#include "solver/solver.h"
#include "tools/exchange/c_program.h"
#include "tools/flags/solver_flags.h"
#include "tools/inputs/random_inputs.h"

namespace crema {

namespace {

// Trains with each batch that it reads, and writes the weights.
std::string program_text(const CheckedC& checked, int iterations) {
  const CProgram& program = checked.program;
  const std::string name = std::filesystem::path(checked.source).stem().string();
  std::string text = cat("#include <stdio.h>\n#include \"", name, ".h\"\n");
  std::string arguments, reads, weights = cat(program.prefix, "_trained");
  if (checked.weights_file) {
    text += c_weights_array(program.weights_bytes());
    arguments = "w, ";
    weights = "w";
  }
  const std::vector<int>& inputs = program.training->routine.inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    text += cat("static float x", i, "[", program.values[inputs[i]].shape.count(), "];\n");
    arguments += cat("x", i, ", ");
    reads += cat("    if (fread(x", i, ", sizeof x", i, ", 1, in) != 1) return 3;\n");
  }
  text +=
      "int main(int argc, char **argv) {\n  if (argc < 3) return 2;\n"
      "  FILE *const in = fopen(argv[1], \"rb\"), *const out = fopen(argv[2], \"wb\");\n"
      "  if (!in || !out) return 5;\n";
  if (checked.weights_file) text += kReadCWeights;
  return text + cat("  for (int i = 0; i < ", iterations, "; ++i) {\n", reads, "    ",
                    program.prefix, "_train(", arguments, "i, ", program.prefix,
                    "_learning_rate(i));\n  }\n  if (fwrite(", weights, ", sizeof(float), ",
                    program.trained_bytes() / 4, ", out) != ", program.trained_bytes() / 4,
                    ") return 4;\n  return fclose(out);\n}\n");
}

void copy_parameters(const Net& from, Net& to) {
  for (size_t i = 0; i < to.parameters().size(); ++i)
    from_floats(to.context(), to_floats(from.context(), from.graph().parameters[i].data).data(),
                to.parameters()[i].data);
  to.parameters_changed();
}

// The largest magnitudes of one parameter.
struct Compared {
  bool learned = false;  // or else statistics
  double value = 0, change = 0, difference = 0;
};

Compared compared(const CTraining& training, const CValue& value, const Parameter& parameter,
                  Context& context, const std::vector<float>& found) {
  const std::vector<float> expected = to_floats(context, parameter.data);
  Compared result;
  result.learned = parameter.learned;
  for (size_t i = 0; i < expected.size(); ++i) {
    const size_t at = static_cast<size_t>(value.offset) + i;
    result.value = std::max<double>(result.value, std::abs(expected[i]));
    result.change =
        std::max<double>(result.change, std::abs(expected[i] - training.first_weights[at]));
    result.difference = larger_or_nan(result.difference, std::abs(double{expected[i]} - found[at]));
  }
  return result;
}

// The largest difference among all trained parameters, of their largest change. bytes: the weights that the
// program wrote. Rounding does not count: some parameters have a gradient of zero up to rounding, such as a
// bias before a BatchNorm, and others change by a few units in the last place.
double largest_difference(const CProgram& program, Net& net, const std::string& bytes) {
  constexpr double kRounding = 1e-6;  // of its values, and of the largest change of such parameters
  const CTraining& training = *program.training;
  std::vector<float> found(training.first_weights.size());
  require(bytes.size() == found.size() * sizeof(float), "the program of the files wrote ",
          bytes.size(), " bytes of weights, not ", found.size() * sizeof(float));
  std::copy_n(bytes.data(), bytes.size(), reinterpret_cast<char*>(found.data()));
  std::vector<Compared> all;
  double most[2] = {0, 0}, worst = 0;  // most: of statistics, and of what is learned
  for (const int id : training.trained) {
    const CValue& value = program.values[id];
    for (const Parameter& parameter : net.parameters()) {
      if (parameter_key(parameter) != value.blob) continue;
      all.push_back(compared(training, value, parameter, net.context(), found));
      double& largest = most[int{all.back().learned}];
      largest = std::max(largest, all.back().change);
    }
  }
  for (const Compared& one : all)
    if (!(one.difference <= kRounding * std::max(one.value, most[int{one.learned}])))
      worst = larger_or_nan(worst, one.change > 0 ? one.difference / one.change : INFINITY);
  return worst;
}

}  // namespace

VerifiedTraining verify_c_training(const Net& training, const SolverFile& solver,
                                   const CheckedC& checked, int iterations) {
  CompiledC program;
  VerifiedTraining result;
  result.problem = program.problem();
  if (!result.problem.empty()) return result;
  program.compile(checked.source, program_text(checked, iterations));

  Context context(Device::cpu);
  context.set_log(silent_log());
  SolverFile file = solver;
  train_only(&file.solver);
  file.solver.clear_weights();
  file.solver.set_random_seed(static_cast<int64_t>(checked.program.training->seed));
  SolverOptions options;
  options.fills_inputs = true;
  options.net.folder = training.options().folder;
  Solver trainer(context, file, options);
  copy_parameters(training, trainer.net());
  std::string inputs;
  for (int i = 0; i < iterations; ++i) {
    context.seed = static_cast<uint64_t>(i);
    fill_random_inputs(trainer.net());
    context.seed = trainer.seed();
    for (const int id : checked.program.training->routine.inputs) {
      const std::vector<float> values =
          to_floats(context, trainer.net().input(checked.program.values[id].blob));
      inputs.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    }
    trainer.step(1);
  }
  result.difference =
      largest_difference(checked.program, trainer.net(),
                         program.run(inputs, checked.weights_file ? checked.weights : ""));
  return result;
}

}  // namespace crema
