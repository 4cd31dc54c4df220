// `crema surgery`: its files, and what remains after a mistake.
#include <gtest/gtest.h>

#include "tools/program.h"

namespace crema::tests {
namespace surgery_verb_test {

constexpr const char* kNet = R"(name: "small"
layer { name: "data" type: "DummyData" top: "data" top: "label" dummy_data_param {
  shape { dim: 8 dim: 1 dim: 6 dim: 6 } shape { dim: 8 }
  data_filler { type: "gaussian" } data_filler { type: "constant" value: 1 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 2 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

class SurgeryVerb : public testing::Test {
 protected:
  SurgeryVerb() {
    folder_.write("net.prototxt", kNet);
    folder_.write("solver.prototxt",
                  "net: \"net.prototxt\" base_lr: 0.01 lr_policy: \"fixed\" max_iter: 1 "
                  "random_seed: 1 snapshot_prefix: \"a\"");
    EXPECT_EQ(run(folder_, "train -solver solver.prototxt").code, 0);
  }
  Folder folder_;
};

TEST_F(SurgeryVerb, WritesNetAndWeights) {
  const Outcome outcome =
      run(folder_,
          "crema surgery -model net.prototxt -weights a_iter_1.caffemodel "
          "-output fully.prototxt -output_weights fully.caffemodel -resize 9x7");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* line : {"] ip: InnerProduct of 2x4x4 -> 3 becomes Convolution 4x4\n",
                           "] data: images of 9x7 in place of 6x6\n", "] Output prob: 1x3x2x4\n",
                           "] Wrote fully.prototxt\n", "] Wrote fully.caffemodel\n"})
    expect_part(outcome.err, line);
  const std::string net = folder_.read("fully.prototxt");
  expect_part(net, "# ip: InnerProduct of 2x4x4 -> 3 becomes Convolution 4x4\n");
  expect_part(net, "dim: 1 dim: 1 dim: 7 dim: 9");
  // Every layer of the net finds its blobs in the file.
  const Outcome classified =
      run(folder_,
          "test -model fully.prototxt -weights fully.caffemodel -iterations 1 -assume "
          "default");
  EXPECT_EQ(classified.code, 0) << classified.err;
  expect_part(classified.err, "fully.caffemodel: 2 layers loaded, 0 reshaped, 0 skipped, 0 not in");
}

struct Mistake {
  const char *flags, *says;
};

TEST_F(SurgeryVerb, LeavesNothingAfterAMistake) {
  const Mistake rows[] = {
      {"-model net.prototxt -output f.prototxt -weights a_iter_1.caffemodel",
       "-output_weights FILE.caffemodel is missing"},
      {"-model net.prototxt -output f.prototxt -output_weights f.caffemodel",
       "-output_weights f.caffemodel: -weights FILE.caffemodel is missing"},
      {"-model net.prototxt -output f -output_weights f -weights a_iter_1.caffemodel",
       "-output and -output_weights are both f"},
      {"-model net.prototxt -output f.prototxt -output_weights f.caffemodel -weights none", "none"},
      {"-model net.prototxt -output f.prototxt -resize 2x2", "net.prototxt:"},
      {"-model net.prototxt -output f.prototxt -resize 9", "-resize 9: expected width x height"},
      {"-model net.prototxt -output no/f.prototxt -output_weights f.caffemodel -weights "
       "a_iter_1.caffemodel",
       "no/f.prototxt"},
  };
  for (const Mistake& row : rows) {
    const Outcome outcome = run(folder_, cat("crema surgery ", row.flags));
    EXPECT_EQ(outcome.code, 1) << row.flags;
    EXPECT_EQ(outcome.out, "");
    ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
    expect_part(outcome.errors()[0], row.says);
    for (const char* file : {"f", "f.prototxt", "f.caffemodel"})
      EXPECT_FALSE(folder_.has(file)) << row.flags;
  }
}

}  // namespace surgery_verb_test
}  // namespace crema::tests
