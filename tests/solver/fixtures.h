// A small net with everything random in it, for the tests of the solver.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/databases/database_writer.h"
#include "solver/solver.h"
#include "support.h"

namespace crema::tests {

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

// The message of the Error that the call throws; "" if it throws none.
template <typename Call>
std::string error_or_none(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline std::vector<float> parameters_of(Solver& solver) {
  std::vector<float> all;
  for (const Parameter& parameter : solver.net().parameters()) {
    const std::vector<float> values = to_floats(solver.net().context(), parameter.data);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

// An LMDB of random images of this shape; label(i): of record i.
inline std::string image_database(const Folder& folder, int64_t records, const Shape& shape,
                                  const std::function<int(int64_t)>& label) {
  const std::string path = folder.file("images");
  const std::unique_ptr<DatabaseWriter> writer = create_database(path, DataParameter::LMDB);
  const Random random{5, 5};
  for (int64_t i = 0; i < records; ++i) {
    Datum datum;
    datum.set_channels(static_cast<int>(shape[0]));
    datum.set_height(static_cast<int>(shape[1]));
    datum.set_width(static_cast<int>(shape[2]));
    std::string bytes;
    for (int64_t k = 0; k < shape.count(); ++k)
      bytes.push_back(static_cast<char>(random.word(i * shape.count() + k)));
    datum.set_data(bytes);
    datum.set_label(label(i));
    writer->put(numbered_key(i, 4), datum);
  }
  writer->finish();
  return path;
}

}  // namespace crema::tests
