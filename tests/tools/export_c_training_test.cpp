// How `crema export -to c -train` verifies training: rounding in front of a ReLU is no error, and errors are found
// beside it.
#include <gtest/gtest.h>

#include "tools/program.h"

namespace crema::tests {
namespace export_c_training_test {

// `one` and `other` compute the same sums in different ways, so in front of relu1 all values are zero up to rounding, which
// decides where gradients flow.
constexpr const char* kNet = R"(
layer { name: "in" type: "DummyData" top: "data" top: "label" dummy_data_param {
  shape { dim: 6 dim: 3 dim: 4 dim: 4 } shape { dim: 6 } data_filler { type: "gaussian" } data_filler { } } }
layer { name: "one" type: "InnerProduct" bottom: "data" top: "one"
  inner_product_param { num_output: 20 bias_term: false weight_filler { type: "constant" value: 0.1 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 20 kernel_size: 4 bias_term: false weight_filler { type: "constant" value: 0.1 } } }
layer { name: "other" type: "Flatten" bottom: "conv" top: "other" }
layer { name: "nothing" type: "Eltwise" bottom: "one" bottom: "other" top: "nothing" eltwise_param { coeff: 1 coeff: -1 } }
layer { name: "relu1" type: "ReLU" bottom: "nothing" top: "nothing" }
layer { name: "plain" type: "InnerProduct" bottom: "data" top: "plain"
  inner_product_param { num_output: 20 weight_filler { type: "xavier" } } }
layer { name: "relu2" type: "ReLU" bottom: "plain" top: "plain" }
layer { name: "sum" type: "Eltwise" bottom: "nothing" bottom: "plain" top: "sum" }
layer { name: "last" type: "InnerProduct" bottom: "sum" top: "last"
  inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "last" bottom: "label" top: "loss" }
)";

class ExportCTraining : public testing::Test {
 protected:
  ExportCTraining() {
    folder_.write("net.prototxt", kNet);
    folder_.write("solver.prototxt",
                  "net: \"net.prototxt\" base_lr: 0.01 lr_policy: \"fixed\" max_iter: 1 "
                  "random_seed: 1 snapshot_prefix: \"net\"");
    const Outcome trained = run(folder_, "train -solver solver.prototxt -set base_lr=0");
    EXPECT_EQ(trained.code, 0) << trained.err;
  }

  // By a compiler that changes the files with `change`, a script of sed.
  Outcome exported(const std::string& change) {
    folder_.write("cc", cat("#!/bin/sh\n[ \"$1\" = --version ] && echo other 1 && exit\nsed -i '",
                            change, "' net.c\nexec cc \"$@\"\n"));
    return run_shell(folder_,
                     "chmod +x cc && CC=./cc $TOOLS/crema export -to c -train -solver "
                     "solver.prototxt -model net.prototxt -weights net_iter_1.caffemodel -output "
                     "net.c");
  }

  Folder folder_;
};

TEST_F(ExportCTraining, AllowsForWhatRoundingDecides) {
  const Outcome outcome = exported("");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.err, "noise of the size of rounding changes these by");
}

// A wrong sign, and a sum without its last term.
TEST_F(ExportCTraining, FindsErrors) {
  for (const char* const change :
       {"s/relu_gradient, y > 0 ? dy/relu_gradient, y > 0 ? -dy/",
        "/static void outer_products/,/^}/s/column, b, rows/column, b, rows - 1/"}) {
    const Outcome outcome = exported(change);
    EXPECT_EQ(outcome.code, 1) << change;
    expect_part(outcome.err, "training in C changes weights otherwise than Crema");
  }
}

}  // namespace export_c_training_test
}  // namespace crema::tests
