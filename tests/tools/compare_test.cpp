// `crema compare`: runs, weights, and a net with itself.
#include <cmath>
#include <limits>

#include "tools/program.h"
#include "tools/tune/differences.h"

namespace crema::tests {
namespace compare_test {

constexpr const char* kNet =
    "layer { name: \"in\" type: \"DummyData\" top: \"x\" top: \"y\" dummy_data_param { shape { "
    "dim: 8 dim: 2 dim: 6 dim: 6 } shape { dim: 8 } data_filler { type: \"gaussian\" std: 1 } "
    "data_filler { type: \"constant\" value: 2 } } }\n"
    "layer { name: \"conv\" type: \"Convolution\" bottom: \"x\" top: \"c\" convolution_param { "
    "num_output: 40 kernel_size: 3 weight_filler { type: \"xavier\" } } }\n"
    "layer { name: \"relu\" type: \"ReLU\" bottom: \"c\" top: \"c\" }\n"
    "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"c\" top: \"z\" inner_product_param { "
    "num_output: 4 weight_filler { type: \"xavier\" } } }\n"
    "layer { name: \"accuracy\" type: \"Accuracy\" bottom: \"z\" bottom: \"y\" top: \"accuracy\" "
    "include { phase: TEST } }\n"
    "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"z\" bottom: \"y\" top: \"loss\" "
    "}\n";
constexpr const char* kSolver =
    "net: \"net.prototxt\"\nbase_lr: 0.01\nlr_policy: \"fixed\"\nmax_iter: 2\ntest_iter: 1\n"
    "test_interval: 1\ndisplay: 1\nsnapshot_prefix: \"s\"\nrandom_seed: 4\n";

void write_files(const Folder& folder) {
  folder.write("net.prototxt", kNet);
  folder.write("s.prototxt", kSolver);
}

void train(const Folder& folder, const std::string& flags) {
  const Outcome outcome = run(folder, "crema train -solver s.prototxt " + flags);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
}

// A nan is not lost among small differences, nor these next to an infinite value.
TEST(Compare, NumbersThatAreNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinite = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isnan(difference_of({nan, 1}, {0, 1.0001f}).largest));
  EXPECT_NEAR(difference_of({infinite, 1}, {infinite, 2}).relative, 0.5, 1e-6);
  EXPECT_TRUE(difference_of({nan, infinite}, {nan, infinite}).same);
}

// Flags that leave everything as it is, flags that change rounding, and those that change results.
TEST(Compare, ANetWithItself) {
  const Folder folder;
  write_files(folder);
  struct Row {
    const char* with;
    std::vector<std::string> says;  // with an alternative after a bar
  };
  // The plain kernels are also the fastest for this net where oneDNN has none.
  const Row rows[] = {
      {"-off overlap",
       {"Every top is the same bit for bit.\nEvery gradient is the same bit for bit.\n"}},
      {"-implementation plain",
       {"No top differs beyond rounding (0.0001 of its norm).|Every top is the same bit for bit.",
        "No gradient differs beyond rounding (0.0001 of its norm).|"
        "Every gradient is the same bit for bit."}},
      {"-set layer[ip].inner_product_param.bias_filler.value=0.5",
       {"Every top is the same bit for bit.\n"}},  // the parameters are those of the first net
      {"-set layer[relu].relu_param.negative_slope=0.5",
       {"The first top that differs is that of layer \"relu\", c, by ",
        "The first beyond rounding (0.0001) is that of layer \"relu\", c, by ",
        "The first beyond rounding (0.0001) is that of layer \"ip\", parameter ", "  <--\n"}},
  };
  for (const Row& row : rows) {
    const Outcome outcome =
        run(folder, cat("crema compare -model net.prototxt -with '", row.with, "'"));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    for (const std::string& parts : row.says) {
      const size_t bar = parts.find('|');
      if (bar == parts.npos || outcome.out.find(parts.substr(0, bar)) == std::string::npos)
        expect_part(outcome.out, parts.substr(bar == parts.npos ? 0 : bar + 1));
    }
    expect_part(outcome.out, "\nconv   parameter 0");
  }
  const Outcome test =
      run(folder, "crema compare -model net.prototxt -phase TEST -with '-off format'");
  expect_part(test.out, "\naccuracy  accuracy ");
  EXPECT_EQ(test.out.find("gradient"), std::string::npos);
}

TEST(Compare, TwoFilesOfWeights) {
  const Folder folder;
  write_files(folder);
  train(folder, "-set snapshot=1");
  train(folder, "-set snapshot_format=HDF5");
  const Outcome same = run(folder, "crema compare s_iter_2.caffemodel s_iter_2.caffemodel.h5");
  EXPECT_EQ(same.out, "4 parameters are in both files: 4 are the same bit for bit, 0 differ.\n");
  const Outcome other = run(folder, "crema compare s_iter_1.caffemodel s_iter_2.caffemodel");
  expect_part(other.out, "parameter  shape  ");
  expect_part(other.out, "4 parameters are in both files: 0 are the same bit for bit, 4 differ.\n");

  folder.write("net.prototxt",
               std::string(kNet).replace(std::string(kNet).find("\"ip\""), 4, "\"fc\""));
  train(folder, "-set snapshot_prefix=t -set 'layer[conv].convolution_param.num_output=5'");
  const Outcome nets = run(folder, "crema compare s_iter_2.caffemodel t_iter_2.caffemodel");
  EXPECT_EQ(nets.code, 0);
  EXPECT_EQ(nets.out,
            "2 parameters are in both files: 0 are the same bit for bit, 0 differ, 2 have other "
            "shapes.\n"
            "Other shapes: conv[0] (40x2x3x3 and 5x2x3x3), conv[1] (40 and 5)\n"
            "Only in s_iter_2.caffemodel: ip[0] 4x640, ip[1] 4\n"
            "Only in t_iter_2.caffemodel: fc[0] 4x80, fc[1] 4\n");
}

TEST(Compare, TwoTrainings) {
  const Folder folder;
  write_files(folder);
  train(folder, "-run a");
  train(folder, "-run b -set base_lr=0.5 -set max_iter=3");
  const Outcome outcome = run(folder, "crema compare a b/metrics.jsonl");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.out, "A is a (run ");
  expect_part(outcome.out, " 2 iterations, ");
  expect_part(outcome.out, ", B is b/metrics.jsonl (run ");
  expect_part(outcome.out, "\nBoth train the same net with different solvers.\n");
  expect_part(outcome.out, "\ntest accuracy  ");
  expect_part(outcome.out, "\ntraining loss  ");
}

struct Refused {
  const char* flags;
  const char* message;
};

TEST(Compare, RefusesWhatCannotBeCompared) {
  const Folder folder;
  write_files(folder);
  folder.write("some.caffemodel", "");
  for (const Refused& row : {
           Refused{"", "expected two runs or two weights files, or one net"},
           Refused{"-model net.prototxt", "expected two runs"},
           Refused{"some.caffemodel", "give a second one to compare some.caffemodel with"},
           Refused{"some.caffemodel none.caffemodel", "none.caffemodel: there is no such file"},
           Refused{". some.caffemodel", ". is a training run, some.caffemodel is not"},
           Refused{"some.caffemodel some.caffemodel -model net.prototxt",
                   "-model and -with compare a net with itself"},
           Refused{"some.caffemodel some.caffemodel", "some.caffemodel: "},
           Refused{"-model net.prototxt -with '-precison fp16'",
                   "-with: `crema compare` has no flag -precison (did you mean \"-precision\"?)"},
           Refused{"-model net.prototxt -with plain", "-with: \"plain\" is not a flag"},
           Refused{"-model net.prototxt -with '-set layer[ip].inner_product_param.num_output=5'",
                   "the second net has different parameters"},
       }) {
    const Outcome outcome = run(folder, std::string("crema compare ") + row.flags);
    EXPECT_EQ(outcome.code, 1) << row.flags;
    ASSERT_EQ(outcome.errors().size(), 1u) << row.flags << "\n" << outcome.err;
    expect_part(outcome.errors()[0], row.message);
  }
}

}  // namespace compare_test
}  // namespace crema::tests
