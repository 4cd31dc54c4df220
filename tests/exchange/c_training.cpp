// Trains the nets of c_training.rows in C and in Crema, and compares the weights:  c_training FOLDER [NAME...]
// Prints a line for each net; exit code 1 if one differs, if the compiler warns, or if one is not refused as
// its row says. $CC, $CFLAGS and $RUN as for c_rows.
#include <cmath>
#include <filesystem>
#include <iostream>
#include <set>

#include "base/files.h"
#include "exchange/c/export.h"
#include "exchange/programs.h"
#include "exchange/row_nets.h"
#include "net/deploy/deploy.h"
#include "solver/solver.h"

namespace crema {
namespace {

constexpr int kIterations = 100;

struct TrainingRow {
  std::string name, refused, solver, net;
  double tolerance = 1e-5;  // relative to the largest change of the parameter
};

std::vector<TrainingRow> read_training_rows() {
  std::vector<TrainingRow> rows;
  for (const std::string& line :
       split(read_text(CREMA_TEST_DATA "/exchange/c_training.rows"), '\n')) {
    const auto rest_of = [&](const char* word, std::string* to) {
      if (!starts_with(line, word)) return false;
      *to = trim(line.substr(std::string(word).size()));
      return true;
    };
    std::string name, tolerance;
    if (line.empty() || line[0] == '#') continue;
    if (rest_of("row ", &name))
      rows.emplace_back().name = name;
    else if (rest_of("tolerance ", &tolerance))
      rows.back().tolerance = std::stod(tolerance);
    else if (!rest_of("refused ", &rows.back().refused) && !rest_of("solver ", &rows.back().solver))
      rows.back().net += line + "\n";
  }
  return rows;
}

// Samples of class k have noise around a picture of their own, so that there is something to learn.
class Batches {
 public:
  explicit Batches(const Net& net) {
    for (const Node& node : net.graph().nodes)
      if (node.message.type().find("Loss") != std::string::npos) {
        classes_ = net.graph().values[node.bottoms[0]].shape[1];
        labels_ = node.message.type() == "SoftmaxWithLoss";
        answers_ = node.message.type() == "SigmoidCrossEntropyLoss";
      }
  }

  std::vector<float> data(const Shape& shape) {
    std::vector<float> values;
    const int64_t size = shape.count(1);
    for (int64_t i = 0; i < shape.count(); ++i) {
      const int64_t kind = i / size % classes_;
      values.push_back(noise() + 0.5f * std::sin(static_cast<float>((kind + 1) * (i % size))));
    }
    return values;
  }
  std::vector<float> labels(const Shape& shape) {
    std::vector<float> values;
    for (int64_t i = 0; i < shape.count(); ++i)
      values.push_back(labels_    ? static_cast<float>(i % classes_)
                       : answers_ ? static_cast<float>(noise() > 0)
                                  : noise());
    return values;
  }

 private:
  float noise() {
    seed_ = seed_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<float>(seed_ >> 40) / static_cast<float>(1 << 23) - 1;
  }

  int64_t classes_ = 1;
  bool labels_ = false, answers_ = false;
  uint64_t seed_ = 1;
};

class CTrainingRows {
 public:
  explicit CTrainingRows(std::string folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
  }

  void run(const TrainingRow& row) {
    try {
      const std::string result = trained(row);
      complaints_ += result.find("FAILED") != std::string::npos;
      std::cout << row.name << ": " << result << "\n";
    } catch (const Error& error) {
      const std::string message = error.what();
      if (!row.refused.empty() && message.find(row.refused) != std::string::npos) return;
      ++complaints_;
      std::cout << row.name << " is refused: " << message << "\n";
    }
  }
  int complaints() const { return complaints_; }

 private:
  static void copy_weights(Net& from, Net& to) {
    for (Parameter& parameter : to.parameters())
      for (const Parameter& other : from.parameters())
        if (other.layer == parameter.layer && other.index == parameter.index)
          from_floats(to.context(), to_floats(from.context(), other.data).data(), parameter.data);
    to.parameters_changed();
  }

  std::string trained(const TrainingRow& row) {
    Context context(Device::cpu);
    context.set_log(silent_log());
    SolverFile file = parse_solver_text(
        cat(row.solver, " random_seed: 3 snapshot_after_train: false net_param {\n", row.net, "}"),
        row.name);
    SolverOptions options;
    options.fills_inputs = true;
    Solver solver(context, file, options);
    // Statistics of normalizations that are not zero.
    for (Parameter& parameter : solver.net().parameters()) {
      if (parameter.learned) continue;
      const std::vector<float> values(parameter.shape.count(), 1.25f);
      from_floats(context, values.data(), parameter.data);
    }
    solver.net().parameters_changed();
    NetOptions plain;
    plain.keep_blobs = plain.row_major = true;
    plain.fuse = false;
    plain.state.set_phase(TRAIN);
    Net training(context, file.solver.net_param(), plain);
    DeployOptions deployed;
    deployed.where = [](int) { return ""; };
    plain.state.set_phase(TEST);
    Net net(context, deploy(file.solver.net_param(), deployed, context.log()).net, plain);
    copy_weights(solver.net(), training);
    copy_weights(solver.net(), net);
    const CProgram program = compile_to_c(net, training, solver.parameter(), row.name, {});
    if (!row.refused.empty()) return "FAILED, it is not refused";
    const std::vector<float> found = run_c(row, program, solver);
    return compared(row, program, solver.net(), found);
  }

  // Trains both, and returns the weights of the program.
  std::vector<float> run_c(const TrainingRow& row, const CProgram& program, Solver& solver) const {
    const std::string name = cat(folder_, "/", row.name);
    CAbout about;
    about.model = row.name;
    about.header = row.name + ".h";
    const CFiles files = write_c(program, {}, about);
    write_file_atomically(name + ".c", files.source);
    write_file_atomically(name + ".h", files.header);
    write_file_atomically(name + "_main.c", main_text(row.name, program));
    Batches batches(solver.net());
    std::string inputs;
    const auto give = [&](const char* blob, const std::vector<float>& values) {
      solver.net().set_input(blob, values.data());
      inputs.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    };
    for (int i = 0; i < kIterations; ++i) {
      give("data", batches.data(solver.net().input("data").shape()));
      give("label", batches.labels(solver.net().input("label").shape()));
      solver.step(1);
    }
    write_file_atomically(name + ".in", inputs);
    const std::string compile =
        cat(setting("CC", "gcc"), " -std=c99 -Wall -Wextra -pedantic -Werror ",
            setting("CFLAGS", "-O2"), " -I ", folder_, " ", name, ".c ", name, "_main.c -o ", name,
            " -lm");
    const std::string run = cat(setting("RUN", ""), " ", name, " < ", name, ".in > ", name, ".out");
    require(std::system(compile.c_str()) == 0 && std::system(run.c_str()) == 0, name,
            ".c cannot be compiled and run");
    const std::string bytes = read_file(name + ".out");
    std::vector<float> weights(bytes.size() / sizeof(float));
    std::copy_n(bytes.data(), weights.size() * sizeof(float),
                reinterpret_cast<char*>(weights.data()));
    return weights;
  }

  static std::string main_text(const std::string& name, const CProgram& program) {
    const auto count_of = [&](int i) {
      return program.values[program.training->routine.inputs[i]].shape.count();
    };
    return cat("#include <stdio.h>\n#include \"", name, ".h\"\nstatic float data[", count_of(0),
               "], label[", count_of(1), "];\nint main(void) {\n  for (int i = 0; i < ",
               kIterations, "; ++i) {\n",
               "    if (fread(data, sizeof data, 1, stdin) != 1) return 1;\n"
               "    if (fread(label, sizeof label, 1, stdin) != 1) return 1;\n    ",
               name, "_train(data, label, i, ", name, "_learning_rate(i));\n  }\n",
               "  return fwrite(", name, "_trained, sizeof ", name,
               "_trained, 1, stdout) != 1;\n}\n");
  }

  static std::string compared(const TrainingRow& row, const CProgram& program, Net& net,
                              const std::vector<float>& found) {
    const CTraining& training = *program.training;
    if (found.size() != training.first_weights.size()) return "FAILED, it wrote too little";
    double worst = 0, most_of_value = 0;
    for (const int id : training.trained) {
      const CValue& value = program.values[id];
      for (const Parameter& parameter : net.parameters()) {
        if (parameter_key(parameter) != value.blob) continue;
        const std::vector<float> expected = to_floats(net.context(), parameter.data);
        double change = 0, difference = 0, largest = 0;
        for (size_t i = 0; i < expected.size(); ++i) {
          const size_t at = static_cast<size_t>(value.offset) + i;
          change = std::max<double>(change, std::abs(expected[i] - training.first_weights[at]));
          difference = std::max<double>(difference, std::abs(expected[i] - found[at]));
          largest = std::max<double>(largest, std::abs(expected[i]));
          if (!std::isfinite(found[at])) difference = INFINITY;
        }
        worst = std::max(worst, change > 0 ? difference / change : INFINITY);
        most_of_value = std::max(most_of_value, difference / largest);
      }
    }
    return cat(worst <= row.tolerance ? "" : "FAILED, ", "the weights differ by ", worst,
               " of their largest change, and by ", most_of_value, " of their largest value");
  }

  const std::string folder_;
  int complaints_ = 0;
};

}  // namespace

int run_c_training(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "c_training FOLDER [NAME...]\n";
    return 2;
  }
  const std::set<std::string> wanted(argv + 2, argv + argc);
  CTrainingRows rows(argv[1]);
  for (const TrainingRow& row : read_training_rows())
    if (wanted.empty() || wanted.count(row.name) > 0) rows.run(row);
  return rows.complaints() == 0 ? 0 : 1;
}

}  // namespace crema
