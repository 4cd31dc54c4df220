// quantize: ranges, folding, the files that it writes, and what it refuses.
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "exchange/quantize/value_histogram.h"
#include "tools/classified.h"

namespace crema::tests {
namespace quantize_verb_test {

// 100,000 magnitudes of N(0, 1), and one far away.
ValueHistogram with_outlier() {
  const Random random{1, 2};
  std::vector<float> values;
  for (int i = 0; i < 100000; ++i) values.push_back(static_cast<float>(random.normal(i)));
  values.push_back(40);
  ValueHistogram histogram;
  histogram.add(values);
  return histogram;
}

TEST(ValueHistogram, RulesChooseRanges) {
  const ValueHistogram histogram = with_outlier();
  EXPECT_TRUE(histogram.has_negative());
  EXPECT_EQ(histogram.range(RangeRule::minmax, 127), 40);
  // One value of 100,001 is above the largest magnitude that is kept, and ten in all.
  EXPECT_NEAR(histogram.range(RangeRule::percentile, 127), 3.9, 0.2);
  EXPECT_NEAR(histogram.share_above(3.9f), 1e-4, 3e-5);
  // Clipping the outlier to 8 costs 32 * 32 / 100,001 = 0.0102; steps of 8 / 127 cost 0.0003 for all others.
  // Both together are least nearer to the outlier.
  EXPECT_NEAR(histogram.range(RangeRule::mse, 127), 24, 6);
  const float entropy = histogram.range(RangeRule::entropy, 127);
  EXPECT_GT(entropy, 2);
  EXPECT_LT(entropy, 12);
}

TEST(ValueHistogram, GrowsWithItsValues) {
  ValueHistogram histogram;
  histogram.add(std::vector<float>{0, 0, 0.5f});
  histogram.add(std::vector<float>{8, 0, 100});
  EXPECT_FALSE(histogram.has_negative());
  EXPECT_EQ(histogram.count(), 6);
  EXPECT_EQ(histogram.largest(), 100);
  EXPECT_DOUBLE_EQ(histogram.share_above(50), 1. / 6);
  EXPECT_DOUBLE_EQ(histogram.share_above(4), 2. / 6);
  EXPECT_EQ(histogram.share_above(100), 0);
}

TEST(ValueHistogram, KnowsZerosAndRefusesNan) {
  ValueHistogram histogram;
  histogram.add(std::vector<float>{0, 0});
  for (const RangeRule rule :
       {RangeRule::minmax, RangeRule::percentile, RangeRule::entropy, RangeRule::mse})
    EXPECT_EQ(histogram.range(rule, 255), 0);
  EXPECT_THROW(histogram.add(std::vector<float>{1, NAN}), Error);
}

// Images of 8 x 8 whose left or right half is brighter, and a net with a BatchNorm that tells which.
void make_trained_net(const Folder& folder) {
  const Random random{3, 4};
  std::string images("\0\0\x08\x03\0\0\0\x40\0\0\0\x08\0\0\0\x08", 16),
      labels("\0\0\x08\x01\0\0\0\x40", 8);
  for (int image = 0; image < 64; ++image) {
    for (int i = 0; i < 64; ++i) {
      const bool is_bright = (i % 8 < 4) == (image % 2 == 0);
      images += static_cast<char>((is_bright ? 90 : 30) + random.word(image * 64 + i) % 100);
    }
    labels += static_cast<char>(image % 2);
  }
  folder.write("images", images);
  folder.write("labels", labels);
  for (const char* name : {"train_lmdb", "test_lmdb"})
    ASSERT_EQ(run(folder, cat("convert_mnist_data images labels ", name)).code, 0);
  const auto data = [](const char* phase, const char* source) {
    return cat(
        "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" include { phase: ",
        phase, " } transform_param { scale: 0.01 } data_param { source: \"", source,
        "\" batch_size: 16 backend: LMDB } }\n");
  };
  folder.write(
      "net.prototxt",
      "name: \"halves\"\n" + data("TRAIN", "train_lmdb") + data("TEST", "test_lmdb") +
          "layer { name: \"conv\" type: \"Convolution\" bottom: \"data\" top: \"conv\" "
          "convolution_param { "
          "num_output: 8 kernel_size: 3 bias_term: false weight_filler { type: \"xavier\" } } }\n"
          "layer { name: \"bn\" type: \"BatchNorm\" bottom: \"conv\" top: \"bn\" }\n"
          "layer { name: \"scale\" type: \"Scale\" bottom: \"bn\" top: \"bn\" scale_param { "
          "bias_term: true } "
          "}\n"
          "layer { name: \"relu\" type: \"ReLU\" bottom: \"bn\" top: \"bn\" }\n"
          "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"bn\" top: \"ip\" "
          "inner_product_param { "
          "num_output: 2 weight_filler { type: \"xavier\" } } }\n" +
          kClassLoss);
  folder.write(
      "solver.prototxt",
      "net: \"net.prototxt\" base_lr: 0.01 momentum: 0.9 lr_policy: \"fixed\" max_iter: 60 "
      "random_seed: 3 snapshot_prefix: \"net\"\n");
  ASSERT_EQ(run(folder, "train -solver solver.prototxt").code, 0);
}

constexpr const char* kQuantize =
    "crema quantize -model net.prototxt -weights net_iter_60.caffemodel -output int8 -iterations "
    "4 ";

std::string test_loss(const Folder& folder, const std::string& flags,
                      const std::string& model = "int8/net.prototxt",
                      const std::string& weights = "int8/net.caffemodel") {
  const Outcome outcome =
      run(folder, cat("test -model ", model, " -weights ", weights, " -iterations 4 ", flags));
  for (const std::string& line : outcome.messages())
    if (starts_with(line, "Loss: ")) return line.substr(6);
  ADD_FAILURE() << outcome.err;
  return "0";
}

TEST(Quantize, WritesANetThatTestsAsItSays) {
  const Folder folder;
  make_trained_net(folder);
  const Outcome outcome = run(folder, kQuantize);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(
      outcome.err.find("Folded 2 layers (BatchNorm, Scale, Bias) into the weights before them"),
      std::string::npos);
  EXPECT_NE(outcome.err.find("float32: accuracy 1.0000 (4 batches)"), std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("int8: accuracy 1.0000, 0.00 points"), std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.out.find("conv  "), std::string::npos) << outcome.out;
  const std::string text = folder.read("int8/net.prototxt");
  EXPECT_EQ(text.find("BatchNorm"), std::string::npos);
  EXPECT_EQ(text.find("type: \"Scale\""), std::string::npos);
  EXPECT_NE(text.find("phase: TRAIN"), std::string::npos);
  EXPECT_NE(text.find("bias_term: true"), std::string::npos);
  EXPECT_EQ(text.find("is_negative_input"), std::string::npos);  // pixels and a ReLU's results
  // The kernels of integers and the reference round alike; float32 is another net.
  const double integers = std::stod(test_loss(folder, "")),
               plain = std::stod(test_loss(folder, "-implementation plain"));
  EXPECT_NEAR(integers, plain, 1e-5 * plain);
  const double exact =
      std::stod(test_loss(folder,
                          "-set 'layer[conv].quantization_param.bw_layer_in=32' -set "
                          "'layer[conv].quantization_param.bw_params=32' -set "
                          "'layer[ip].quantization_param.bw_layer_in=32' -set "
                          "'layer[ip].quantization_param.bw_params=32'"));
  EXPECT_NE(integers, exact);
  EXPECT_NEAR(integers, exact, 0.05 * exact);
  // Quantizing it again begins from float32.
  const Outcome again = run(folder,
                            "crema quantize -model int8/net.prototxt -weights int8/net.caffemodel "
                            "-output again -iterations 4 -keep conv,ip");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(folder.read("again/net.prototxt").find("quantization_param"), std::string::npos);
  // BatchNorm is folded whatever -off says.
  EXPECT_NE(run(folder, cat(kQuantize, "-off fuse -output off")).err.find("Folded 2 layers"),
            std::string::npos);
  // It can be trained further, which changes nothing in its ranges.
  folder.write("tune.prototxt",
               "net: \"int8/net.prototxt\" base_lr: 0.001 lr_policy: \"fixed\" max_iter: 3 "
               "snapshot_prefix: \"tuned\"\n");
  EXPECT_EQ(run(folder, "train -solver tune.prototxt -weights int8/net.caffemodel").code, 0);
}

// Tests of the training round as the net that is written.
TEST(Quantize, TakesTheRangesOfTraining) {
  const Folder folder;
  make_trained_net(folder);
  folder.write("rounded.prototxt",
               "net: \"net.prototxt\" base_lr: 0.001 lr_policy: \"fixed\" max_iter: 6 test_iter: 4 "
               "test_interval: 6 snapshot_prefix: \"rounded\" quantize { keep: \"ip\" bits: 4 }\n");
  const Outcome training =
      run(folder, "train -solver rounded.prototxt -weights net_iter_60.caffemodel");
  ASSERT_EQ(training.code, 0) << training.err;
  double loss = 0;
  for (const std::string& line : split(training.err, '\n')) {
    const size_t at = line.find("Test net output #1: loss = ");
    if (at != std::string::npos) loss = std::stod(line.substr(at + 27));
  }
  const std::string quantize =
      "crema quantize -model net.prototxt -weights rounded_iter_6.caffemodel -output int8 "
      "-iterations 4 -bits 4 ";
  const Outcome outcome = run(folder, quantize);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("Took the ranges that the weights have from training"),
            std::string::npos);
  const std::string text = folder.read("int8/net.prototxt");
  EXPECT_EQ(text.find("quantization_param"), text.rfind("quantization_param")) << "ip is kept";
  EXPECT_NEAR(std::stod(test_loss(folder, "")), loss, 2e-3 * loss);
  EXPECT_NE(run(folder, quantize + "-range minmax").err.find("Chose ranges from"),
            std::string::npos);
}

TEST(Shrink, RemovesWhatPruningLeft) {
  const Folder folder;
  make_trained_net(folder);
  folder.write("pruned.prototxt",
               "net: \"net.prototxt\" base_lr: 0.001 lr_policy: \"fixed\" max_iter: 6 "
               "snapshot_prefix: \"pruned\" prune { end: 4 interval: 2 }\n");
  ASSERT_EQ(run(folder, "train -solver pruned.prototxt -weights net_iter_60.caffemodel").code, 0);
  const std::string shrink = "crema shrink -model net.prototxt -output small -weights ";
  const Outcome outcome = run(folder, shrink + "pruned_iter_6.caffemodel");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "layer  channels  left\nconv          8     4\n");
  EXPECT_NE(folder.read("small/net.prototxt").find("num_output: 4"), std::string::npos);
  const double before =
                   std::stod(test_loss(folder, "", "net.prototxt", "pruned_iter_6.caffemodel")),
               after =
                   std::stod(test_loss(folder, "", "small/net.prototxt", "small/net.caffemodel"));
  EXPECT_NEAR(after, before, 1e-5 * before);
  // A deploy file has no data: random numbers show whether the results are the same.
  ASSERT_EQ(run(folder, "deploy -model net.prototxt -output deploy.prototxt").code, 0);
  EXPECT_EQ(run(folder,
                "crema shrink -model deploy.prototxt -weights pruned_iter_6.caffemodel "
                "-output smaller")
                .code,
            0);
  EXPECT_NE(run(folder, shrink + "net_iter_60.caffemodel")
                .err.find("no channel is 0, so the net stays as it is"),
            std::string::npos);
  EXPECT_EQ(run(folder, shrink + "nowhere.caffemodel").code, 1);
}

// The teacher's file and weights, from the command line.
TEST(Teacher, IsNamedByFlags) {
  const Folder folder;
  make_trained_net(folder);
  const Outcome outcome =
      run(folder,
          "train -solver solver.prototxt -set max_iter=2 -set snapshot_prefix=taught -teacher "
          "net.prototxt -teacher_weights net_iter_60.caffemodel");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("teacher/loss"), std::string::npos);
  EXPECT_NE(run(folder, "train -solver solver.prototxt -teacher net.prototxt")
                .err.find("teacher has no weights"),
            std::string::npos);
}

TEST(Quantize, KeepsLayersInFloat32) {
  const Folder folder;
  make_trained_net(folder);
  ASSERT_EQ(run(folder, cat(kQuantize, "-keep conv")).code, 0);
  const std::string text = folder.read("int8/net.prototxt");
  const size_t first = text.find("quantization_param");
  EXPECT_GT(first, text.find("name: \"ip\""));
  EXPECT_EQ(text.find("quantization_param", first + 1), std::string::npos);
  // Weights of two bits are -1, 0 and 1 times a step.
  ASSERT_EQ(run(folder, cat(kQuantize, "-bits 2")).code, 0);
  EXPECT_NE(folder.read("int8/net.prototxt").find("bw_params: 2"), std::string::npos);
  EXPECT_NE(test_loss(folder, ""), "0");
  // A budget that holds keeps all layers.
  ASSERT_EQ(run(folder, cat(kQuantize, "-budget 5 -calibrate test -range mse")).code, 0);
  EXPECT_NE(folder.read("int8/net.prototxt").find("quantization_param"),
            text.find("quantization_param"));
}

TEST(Quantize, TakesPicturesForADeployFile) {
  const Folder folder;
  make_trained_net(folder);
  ASSERT_EQ(run(folder, "deploy -model net.prototxt -output deploy.prototxt").code, 0);
  const std::string quantize =
      "crema quantize -model deploy.prototxt -weights net_iter_60.caffemodel -output int8 ";
  // The records of the database are what the training file reads: the same ranges.
  ASSERT_EQ(run(folder, cat(kQuantize, "-range minmax -calibrate_images 64")).code, 0);
  const std::string of_training = folder.read("int8/net.prototxt");
  const Outcome outcome = run(folder, quantize + "-range minmax -calibrate train_lmdb");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("Chose ranges from 64 images"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.out.find("points alone"), std::string::npos);
  const std::string of_deploy = folder.read("int8/net.prototxt");
  EXPECT_NE(of_deploy.find("# crema: input {"), std::string::npos);
  const auto ranges = [](const std::string& text) {
    std::string lines;
    for (const std::string& line : split(text, '\n'))
      if (line.find("scale_in") != std::string::npos) lines += line;
    return lines;
  };
  EXPECT_EQ(ranges(of_deploy), ranges(of_training));
  ASSERT_NE(ranges(of_deploy), "");
  EXPECT_EQ(run(folder, quantize + "-calibrate random -calibrate_images 4").code, 0);
  const Outcome refused = run(folder, quantize);
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(
      refused.err.find("the net reads no data in phase TEST: give its training file, or pictures"),
      std::string::npos)
      << refused.err;
  EXPECT_EQ(run(folder, quantize + "-calibrate train_lmdb -budget 1").code, 1);
}

TEST(Quantize, RefusesWhatItCannotDo) {
  const Folder folder;
  make_trained_net(folder);
  struct Row {
    const char *flags, *message;
  };
  for (const Row& row : {
           Row{"-keep con",
               "-keep con: the net has no such layer that could be quantized (did you mean "
               "\"conv\"?)"},
           Row{"-range entropi",
               "-range entropi: expected minmax, percentile, entropy, mse (did you mean "
               "\"entropy\"?)"},
           Row{"-calibrate nowhere_lmdb", "nowhere_lmdb"},
           Row{"-budget 1 -each_layer=false", "-budget needs -each_layer"},
           Row{"-output images", "-output images: is a file; expected a folder, or a new one"},
           Row{"-output images/int8", "-output images/int8: cannot be made: Not a directory"},
           Row{"-bits 9", "-bits 9: expected 2 to 8"},
           Row{"-calibrate_images 0", "-calibrate_images 0: expected a positive number"},
       }) {
    const Outcome outcome = run(folder, cat(kQuantize, row.flags));
    EXPECT_EQ(outcome.code, 1) << row.flags;
    EXPECT_NE(outcome.err.find(row.message), std::string::npos) << row.flags << "\n" << outcome.err;
    EXPECT_FALSE(folder.has("int8")) << row.flags;
  }
}

}  // namespace quantize_verb_test
}  // namespace crema::tests
