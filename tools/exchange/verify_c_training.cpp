#include "tools/exchange/verify_c_training.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "base/larger.h"
#include "base/random.h"
#include "base/visible.h"
#include "net/plan/plan.h"
#include "solver/solver.h"
#include "tools/exchange/c_program.h"
#include "tools/flags/solver_flags.h"
#include "tools/inputs/random_inputs.h"

namespace crema {

namespace {

// Trains with each batch that it reads, from the weights before it, and writes the weights behind it.
std::string program_text(const CheckedC& checked) {
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
  const std::string all = cat(weights, ", sizeof(float), ", program.trained_bytes() / 4);
  return text + cat("  for (int i = 0; fread(", all, ", in) == ", program.trained_bytes() / 4,
                    "; ++i) {\n", reads, "    ", program.prefix, "_train(", arguments, "i, ",
                    program.prefix, "_learning_rate(i));\n    if (fwrite(", all,
                    ", out) != ", program.trained_bytes() / 4,
                    ") return 4;\n  }\n  return fclose(out);\n}\n");
}

using Weights = std::vector<float>;  // those of CTraining::first_weights

// An iteration of the reference: a net's weights before it and behind it, and its inputs.
struct Step {
  Weights before, behind;
  std::vector<std::vector<float>> inputs;
};

// Trains a net with Crema.
class Trainer {
 public:
  Trainer(const Net& training, const SolverFile& solver, const CProgram& program)
      : program_(program), context_(Device::cpu) {
    context_.set_log(silent_log());
    SolverFile file = solver;
    train_only(&file.solver);
    file.solver.clear_weights();
    file.solver.set_random_seed(static_cast<int64_t>(program.training->seed));
    SolverOptions options;
    options.fills_inputs = true;
    options.net.folder = training.options().folder;
    solver_ = std::make_unique<Solver>(context_, file, options);
    Net& net = solver_->net();
    for (size_t i = 0; i < net.parameters().size(); ++i)
      from_floats(context_,
                  to_floats(training.context(), training.graph().parameters[i].data).data(),
                  net.parameters()[i].data);
    net.parameters_changed();
    for (const int id : program.training->trained)
      for (Parameter& parameter : net.parameters())
        if (parameter_key(parameter) == program.values[id].blob)
          trained_.emplace_back(&parameter, program.values[id].offset);
  }

  Net& net() { return solver_->net(); }

  Weights weights() {
    Weights all = program_.training->first_weights;
    for (const auto& [parameter, offset] : trained_) {
      const std::vector<float> values = to_floats(context_, parameter->data);
      std::copy(values.begin(), values.end(), all.begin() + offset);
    }
    return all;
  }

  Step step(uint64_t seed) {
    Step step;
    context_.seed = seed;
    fill_random_inputs(net());
    context_.seed = solver_->seed();
    for (const int id : program_.training->routine.inputs)
      step.inputs.push_back(to_floats(context_, net().input(program_.values[id].blob)));
    step.before = weights();
    solver_->step(1);
    step.behind = weights();
    return step;
  }

  // The same iteration with a relative noise in the weights. Returns how they change.
  Weights noisy_change(const Step& step, double noise, const Random& random) {
    Weights before = step.before;
    for (const auto& [parameter, offset] : trained_) {
      float* const values = before.data() + offset;
      if (parameter->learned)
        for (int64_t i = 0; i < parameter->shape.count(); ++i)
          values[i] *= static_cast<float>(1 + noise * (2 * random.uniform(offset + i) - 1));
      from_floats(context_, values, parameter->data);
    }
    net().parameters_changed();
    const std::vector<int>& inputs = program_.training->routine.inputs;
    for (size_t i = 0; i < inputs.size(); ++i)
      net().set_input(program_.values[inputs[i]].blob, step.inputs[i].data());
    solver_->step(1);
    Weights change = weights();
    for (size_t i = 0; i < change.size(); ++i) change[i] -= before[i];
    return change;
  }

 private:
  const CProgram& program_;
  Context context_;
  std::unique_ptr<Solver> solver_;
  std::vector<std::pair<Parameter*, int64_t>> trained_;  // with the place among Weights
};

// The largest magnitudes of one parameter in one iteration.
struct Compared {
  bool learned = false;  // or else statistics
  double value = 0, change = 0, difference = 0, noise = 0;
};

// Compares the parameters in each iteration.
class Comparison {
 public:
  Comparison(const CProgram& program, Net& net, const std::vector<Step>& steps)
      : program_(program), steps_(steps), compared_(steps.size()) {
    for (const int id : program.training->trained) {
      const auto found = std::find_if(net.parameters().begin(), net.parameters().end(),
                                      [&](const Parameter& parameter) {
                                        return parameter_key(parameter) == program.values[id].blob;
                                      });
      require(found != net.parameters().end(), "the net has no parameter ",
              program.values[id].blob);
      for (std::vector<Compared>& all : compared_) all.emplace_back().learned = found->learned;
    }
  }

  void add_program(const std::string& bytes) {
    const size_t count = program_.training->first_weights.size();
    require(bytes.size() == steps_.size() * count * sizeof(float),
            "the program of the files wrote ", bytes.size(), " bytes of weights, not ",
            steps_.size() * count * sizeof(float));
    Weights found(count);
    for (size_t i = 0; i < steps_.size(); ++i) {
      std::copy_n(bytes.data() + i * count * sizeof(float), count * sizeof(float),
                  reinterpret_cast<char*>(found.data()));
      const Weights &before = steps_[i].before, &behind = steps_[i].behind;
      for_each(i, [&](size_t at, Compared& one) {
        one.value = std::max<double>(one.value, std::abs(behind[at]));
        one.change = std::max<double>(one.change, std::abs(double{behind[at]} - before[at]));
        one.difference = larger_or_nan(one.difference, std::abs(double{behind[at]} - found[at]));
      });
    }
  }

  void add_noise(size_t i, const Weights& change) {
    const Weights &before = steps_[i].before, &behind = steps_[i].behind;
    for_each(i, [&](size_t at, Compared& one) {
      const double difference = std::abs(change[at] - (double{behind[at]} - before[at]));
      if (!std::isnan(difference)) one.noise = std::max(one.noise, difference);
    });
  }

  // Rounding does not count: some parameters have a gradient of zero up to rounding, such as a bias before
  // a BatchNorm, and others change by a few units in the last place.
  VerifiedTraining result(double tolerance) const {
    constexpr double kRounding = 1e-6;  // of values, and of the largest change of such parameters
    constexpr double kOfNoise = 3;      // the difference may be as many times larger
    VerifiedTraining worst;
    double excess = 0;
    for (const std::vector<Compared>& all : compared_) {
      double most[2] = {0, 0};  // the change of statistics, and of what is learned
      for (const Compared& one : all)
        most[int{one.learned}] = std::max(most[int{one.learned}], one.change);
      for (const Compared& one : all) {
        if (one.difference <= kRounding * std::max(one.value, most[int{one.learned}])) continue;
        const double ratio =
            one.difference / std::max(tolerance * one.change, kOfNoise * one.noise);
        if (ratio <= excess) continue;
        excess = std::isnan(ratio) ? INFINITY : ratio;
        const double change = std::max(one.change, one.noise);
        worst.difference = change > 0 ? one.difference / change : INFINITY;
        worst.noise = change > 0 ? one.noise / change : 0;
      }
    }
    worst.passes = excess <= 1;
    return worst;
  }

 private:
  template <typename F>
  void for_each(size_t step, const F& visit) {
    size_t index = 0;
    for (const int id : program_.training->trained) {
      const CValue& value = program_.values[id];
      for (int64_t i = 0; i < value.shape.count(); ++i)
        visit(static_cast<size_t>(value.offset + i), compared_[step][index]);
      ++index;
    }
  }

  const CProgram& program_;
  const std::vector<Step>& steps_;
  std::vector<std::vector<Compared>> compared_;  // by iteration and parameter
};

// Rounding in sums of thousands of products changes them as noise in the weights does.
constexpr double kNoise = 0x1p-18;
constexpr int kNoisyRuns = 4;

}  // namespace

VerifiedTraining verify_c_training(const Net& training, const SolverFile& solver,
                                   const CheckedC& checked, int iterations, double tolerance) {
  constexpr int kAttempts = 3;
  CompiledC program;
  VerifiedTraining result;
  result.problem = program.problem();
  if (!result.problem.empty()) return result;
  program.compile(checked.source, program_text(checked));
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::vector<Step> steps;
    std::string input;
    const auto append = [&](const std::vector<float>& values) {
      input.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    };
    Trainer reference(training, solver, checked.program);
    for (int i = 0; i < iterations; ++i) {
      steps.push_back(reference.step(static_cast<uint64_t>(attempt * iterations + i)));
      append(steps.back().before);
      for (const std::vector<float>& values : steps.back().inputs) append(values);
    }
    Comparison comparison(checked.program, reference.net(), steps);
    comparison.add_program(program.run(input, checked.weights_file ? checked.weights : ""));
    result = comparison.result(tolerance);
    for (int run = 0; run < kNoisyRuns && !result.passes; ++run) {
      Trainer noisy(training, solver, checked.program);
      for (size_t i = 0; i < steps.size(); ++i)
        comparison.add_noise(i,
                             noisy.noisy_change(steps[i], kNoise,
                                                training.context().random(run * steps.size() + i)));
      result = comparison.result(tolerance);
    }
    if (result.passes) break;
  }
  return result;
}

}  // namespace crema
