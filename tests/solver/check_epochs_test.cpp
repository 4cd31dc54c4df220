// `crema check` of solvers that count epochs.
#include "fixtures.h"
#include "solver/check/check.h"

namespace crema::tests {
namespace check_epochs_test {

const char* const kScores =
    "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"x\" top: \"z\" inner_product_param { "
    "num_output: 3 weight_filler { type: \"xavier\" } } }\n";
const char* const kLoss =
    "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"z\" bottom: \"y\" top: \"l\" }\n";

std::string said_of(const std::string& solver, const std::string& net) {
  const SolverFile file =
      parse_solver_text(cat("net_param {\n", net, "}\n", solver), "solver.prototxt");
  std::string text;
  for (const Finding& finding : check_training(file, {})) text += line_of(finding) + "\n";
  return text;
}

// 60 records by 10 are 6 iterations.
TEST(CheckEpochs, AsIterationsOfTheData) {
  struct Row {
    const char *said, *solver;  // "": nothing
  };
  const Folder folder;
  const std::string net =
      cat("layer { name: \"in\" type: \"Data\" top: \"x\" top: \"y\" data_param { source: \"",
          image_database(folder, 60, {2, 3, 3}, [](int64_t i) { return static_cast<int>(i % 3); }),
          "\" backend: LMDB batch_size: 10 } }\n", kScores, kLoss);
  for (const Row& row :
       {Row{"", "max_epoch: 3 lr_policy: \"cosine\" test_epoch: true test_interval_epoch: 0.5"},
        Row{"", "max_epoch: 3 lr_policy: \"multistep\" gamma: 0.1 stepvalue_epoch: [1, 2]"},
        Row{"", "max_epoch: 3 lr_policy: \"multistep\" gamma: 0.1 stepvalue: [6, 17]"},
        Row{"stepvalue[1] is 18, but max_epoch is 3: this step is never reached",
            "max_epoch: 3 lr_policy: \"multistep\" gamma: 0.1 stepvalue: [6, 18]"},
        Row{"stepvalue_epoch[1] is 3, but max_iter is 18: this step is never reached",
            "max_iter: 18 lr_policy: \"multistep\" gamma: 0.1 stepvalue_epoch: [1, 3]"},
        Row{"stepvalue_epoch 0.5 comes after 1.5",
            "max_epoch: 3 lr_policy: \"multistep\" gamma: 0.1 stepvalue_epoch: [1.5, 0.5]"},
        Row{"stepsize_epoch is 3.5, but max_epoch is 3: the rate never falls",
            "max_epoch: 3 lr_policy: \"step\" gamma: 0.1 stepsize_epoch: 3.5"},
        Row{"stepsize_epoch has no effect under lr_policy \"fixed\"",
            "max_epoch: 3 lr_policy: \"fixed\" stepsize_epoch: 1"},
        Row{"test_interval_epoch is 4, but max_epoch is 3: the only test",
            "max_epoch: 3 lr_policy: \"fixed\" test_epoch: true test_interval_epoch: 4"},
        Row{"error: max_epoch is given together with max_iter",
            "max_epoch: 3 max_iter: 9 lr_policy: \"fixed\""},
        Row{"error: lr_policy \"poly\" needs power", "max_epoch: 3 lr_policy: \"poly\""}}) {
    const std::string said = said_of(cat("base_lr: 0.01 ", row.solver), net);
    if (*row.said == 0) {
      EXPECT_EQ(said, "");
    } else {
      expect_part(said, row.said);
    }
  }
  const std::string input =
      cat("layer { name: \"in\" type: \"DummyData\" top: \"x\" top: \"y\" }\n", kScores, kLoss);
  EXPECT_EQ(
      said_of("base_lr: 0.01 max_epoch: 3 lr_policy: \"step\" gamma: 0.1 stepsize: 9999", input),
      "")
      << "the length of an epoch is not known";
  const std::string memory =
      cat("layer { name: \"in\" type: \"MemoryData\" top: \"x\" top: \"y\" }\n", kScores, kLoss);
  expect_part(
      said_of("base_lr: 0.01 max_iter: 100 lr_policy: \"fixed\" test_epoch: true test_interval: 9",
              memory),
      "error: test_epoch, but layer \"in\" (MemoryData) has no epochs");
}

}  // namespace check_epochs_test
}  // namespace crema::tests
