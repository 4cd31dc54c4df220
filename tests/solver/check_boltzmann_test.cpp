// `crema check` for restricted Boltzmann machines.
#include "data/databases/database_writer.h"
#include "fixtures.h"
#include "solver/check/check.h"

namespace crema::tests {
namespace check_boltzmann_test {

const std::string kSolver = "base_lr: 0.01 max_iter: 100 ", kFixed = "lr_policy: \"fixed\" ";
const std::string kInput = "layer { name: \"in\" type: \"DummyData\" top: \"x\" top: \"y\" }\n";

std::string layer(const std::string& type, const std::string& bottom, const std::string& top,
                  const std::string& more = "") {
  return cat("layer { name: \"", top, "_", type, "\" type: \"", type, "\" bottom: \"", bottom,
             "\" top: \"", top, "\" ", more, " }\n");
}

std::string dense(const std::string& bottom, const std::string& top) {
  return layer("InnerProduct", bottom, top,
               "inner_product_param { num_output: 3 weight_filler { type: \"xavier\" } }");
}

std::string said_of(const std::string& solver, const std::string& net) {
  std::string text;
  const SolverFile file =
      parse_solver_text(cat("net_param {\n", net, "}\n", solver), "solver.prototxt");
  for (const Finding& finding : check_training(file, {})) text += line_of(finding) + "\n";
  return text;
}

struct Case {
  std::string said, solver, net;
};

void PrintTo(const Case& row, std::ostream* out) { *out << row.said; }

class CheckBoltzmann : public testing::TestWithParam<Case> {};

TEST_P(CheckBoltzmann, IsSaid) {
  const Case& row = GetParam();
  const std::string text = said_of(row.solver, row.net);
  if (row.said.empty()) {
    EXPECT_EQ(text, "");
  } else {
    expect_part(text, row.said);
  }
}

Case net(const std::string& said, const std::string& text) {
  return {said, kSolver + kFixed, text};
}

std::string rbm(
    const std::string& bottom, const std::string& fields,
    const std::string& more = "param { } param { decay_mult: 0 } param { decay_mult: 0 }") {
  return layer("RBM", bottom, "e", cat(more, " rbm_param { num_output: 3 ", fields, " }"));
}

Case decaying(const std::string& said, const std::string& params) {
  return {said, kSolver + kFixed + "weight_decay: 0.001", kInput + rbm("x", "", params)};
}

Case gaussian(const std::string& said, const std::string& solver, const std::string& fields,
              const std::string& more = "") {
  return {said, solver + " max_iter: 100 " + kFixed, kInput + rbm("x", fields, more)};
}

INSTANTIATE_TEST_SUITE_P(
    Rows, CheckBoltzmann,
    testing::Values(
        net("", kInput + rbm("x", "")),
        net("take values from 0 to 1, but \"h_InnerProduct\" (InnerProduct) gives any numbers; put "
            "a Sigmoid",
            kInput + dense("x", "h") + rbm("h", "")),
        net("", kInput + dense("x", "h") + layer("Sigmoid", "h", "h") + rbm("h", "")),
        net("\"n_MVN\" (MVN) gives negative numbers, too",
            kInput + layer("MVN", "x", "n") + rbm("n", "")),
        net("", kInput + layer("MVN", "x", "n") + rbm("n", "visible: GAUSSIAN")),
        net("since its hidden units are GAUSSIAN",
            kInput +
                "layer { name: \"low\" type: \"RBM\" bottom: \"x\" top: \"d\" top: \"h\" rbm_param "
                "{ "
                "num_output: 3 hidden: GAUSSIAN } }\n" +
                rbm("h", "")),
        gaussian("visible units are GAUSSIAN, but the rate of its weights is 0.1 (base_lr 0.1)",
                 "base_lr: 0.1", "visible: GAUSSIAN"),
        gaussian("hidden units are GAUSSIAN, but the rate", "base_lr: 0.1", "hidden: GAUSSIAN"),
        gaussian("is 0.05 (base_lr 0.1, times lr_mult and loss_weight)", "base_lr: 0.1",
                 "visible: GAUSSIAN", "loss_weight: 0.5"),
        gaussian("", "base_lr: 0.1", "visible: GAUSSIAN", "loss_weight: 0.1"),
        gaussian("", "base_lr: 0.1", "visible: GAUSSIAN", "param { lr_mult: 0.1 }"),
        gaussian("", "base_lr: 0.01", "visible: GAUSSIAN"), gaussian("", "base_lr: 0.1", ""),
        gaussian("", "base_lr: 0.03 type: \"Adam\" momentum: 0.9", "visible: GAUSSIAN"),
        decaying("", "param { } param { decay_mult: 0 } param { decay_mult: 0 }"),
        decaying("note: layer \"e_RBM\": weight_decay pulls its biases to 0", ""),
        decaying("weight_decay pulls its biases", "param { } param { decay_mult: 0 }"),
        decaying("", "param { } param { lr_mult: 0 } param { lr_mult: 0 }"),
        decaying("", "loss_weight: 0"),
        net("begin with equal weights and, without sampling, stay equal",
            kInput + rbm("x", "sampling: NONE weight_filler { value: 0.1 }")),
        net("", kInput + rbm("x", "weight_filler { value: 0.1 }")),
        net("", kInput + rbm("x", "sampling: NONE"))));

// Half of the values are `low`, half of them `high`.
std::string bytes_of(const Folder& folder, int low, int high) {
  const std::string path = folder.file("bytes");
  const std::unique_ptr<DatabaseWriter> writer = create_database(path, DataParameter::LMDB);
  for (int i = 0; i < 20; ++i) {
    Datum datum;
    datum.set_channels(1);
    datum.set_height(2);
    datum.set_width(2);
    datum.set_data(std::string(2, static_cast<char>(low)) +
                   std::string(2, static_cast<char>(high)));
    writer->put(numbered_key(i, 4), datum);
  }
  writer->finish();
  return path;
}

TEST(CheckBoltzmannData, ThatItsItsUnitsCannotShow) {
  struct Row {
    int low, high;
    const char *transform, *fields, *said;
  };
  for (const Row& row :
       {Row{0, 1, "", "", ""}, Row{0, 255, "scale: 0.00392156862745098", "", ""},
        Row{0, 255, "", "",
            "error: layer \"e_RBM\": its visible units are BINARY and take values from 0 to 1, but "
            "those of \"in\" are 127.5 on average, with a standard deviation of 127.5, after "
            "transform_param; write transform_param { scale: 0.00392156862745098 } for bytes"},
        Row{0, 2, "", "", "BINARY and take values from 0 to 1"},
        Row{0, 1, "mean_value: 0.5", "", "BINARY and take values from 0 to 1"},
        Row{0, 1, "scale: -1", "", "BINARY and take values from 0 to 1"},
        Row{0, 2, "mean_value: 1", "visible: GAUSSIAN", ""},
        Row{0, 255, "scale: 0.0078 mean_value: 127.5", "visible: GAUSSIAN", ""},
        Row{0, 255, "", "visible: GAUSSIAN",
            "GAUSSIAN units have a variance of 1 around their mean"},
        Row{0, 255, "scale: 0.001 mean_value: 127.5", "visible: GAUSSIAN",
            "a standard deviation of 0.1275"},
        Row{4, 6, "", "visible: GAUSSIAN", "are 5 on average"}}) {
    const Folder folder;
    const std::string text =
        said_of(kSolver + kFixed,
                cat("layer { name: \"in\" type: \"Data\" top: \"x\" data_param { source: \"",
                    bytes_of(folder, row.low, row.high),
                    "\" batch_size: 4 backend: LMDB } transform_param { ", row.transform, " } }\n",
                    rbm("x", row.fields)));
    if (*row.said == 0) {
      EXPECT_EQ(text, "") << row.transform;
    } else {
      expect_part(text, row.said);
    }
  }
}

}  // namespace check_boltzmann_test
}  // namespace crema::tests
