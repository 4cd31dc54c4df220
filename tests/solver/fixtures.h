// A folder, a log and a small net with everything random in it, for the tests of the solver.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "solver/solver.h"

namespace crema::test {

// A folder that vanishes with its object.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "crema_solver_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  std::string path_;
};

inline std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
}

// Keeps every line.
class LineLog : public Log {
 public:
  void write(Severity severity, const std::source_location&, std::string_view line) override {
    lines.emplace_back(line);
    if (severity == Severity::error) errors.emplace_back(line);
    if (severity == Severity::warning) warnings.emplace_back(line);
  }
  std::vector<std::string> lines, errors, warnings;
};

// Keeps the displayed losses.
class Losses : public EventReader {
 public:
  void read(const Event& event) override {
    if (const auto* display = std::get_if<event::Display>(&event)) values.push_back(display->loss);
    if (const auto* end = std::get_if<event::FinalLoss>(&event)) values.push_back(end->loss);
  }
  std::vector<double> values;
};

// New random data in every pass, dropout, two layers with parameters; the test net has other data.
inline const char* kNet = R"(
  name: "small"
  layer { name: "data" type: "DummyData" top: "x" top: "y" include { phase: TRAIN }
    dummy_data_param { shape { dim: 6 dim: 5 } shape { dim: 6 dim: 3 } data_filler { type: "gaussian" std: 1 }
                       data_filler { type: "uniform" min: 0 max: 1 } } }
  layer { name: "data" type: "DummyData" top: "x" top: "y" include { phase: TEST }
    dummy_data_param { shape { dim: 2 dim: 5 } shape { dim: 2 dim: 3 } data_filler { type: "gaussian" std: 2 }
                       data_filler { type: "uniform" min: 0 max: 1 } } }
  layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "h" param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
    inner_product_param { num_output: 7 weight_filler { type: "xavier" } } }
  layer { name: "tanh" type: "TanH" bottom: "h" top: "h" }
  layer { name: "drop" type: "Dropout" bottom: "h" top: "h" dropout_param { dropout_ratio: 0.3 } }
  layer { name: "ip2" type: "InnerProduct" bottom: "h" top: "z" inner_product_param { num_output: 3
    weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "z" bottom: "y" top: "loss" }
)";

// A solver around that net; `more` is added to its text.
inline SolverFile solver_file(const std::string& more, const std::string& net = kNet) {
  return parse_solver_text(
      cat("net_param {", net, "}\nbase_lr: 0.1 lr_policy: \"step\" gamma: 0.5 stepsize: 3\n", more),
      "solver.prototxt");
}

inline std::vector<float> parameters_of(Solver& solver) {
  std::vector<float> all;
  for (const Parameter& parameter : solver.net().parameters()) {
    const std::vector<float> values = to_floats(solver.net().context(), parameter.data);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

// The message of the Error that `body` throws; a failure when it throws none.
template <typename Body>
std::string error_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no Error";
  return "";
}

inline void expect_in(const std::string& part, const std::string& whole) {
  EXPECT_NE(whole.find(part), std::string::npos) << "\"" << part << "\" is not in: " << whole;
}

}  // namespace crema::test
