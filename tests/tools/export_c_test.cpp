// `crema export -to c`: the files, their names and sizes, what they say of mistakes, and their
// verification by a compiler. tests/exchange/c_rows.cpp runs the layers.
#include <gtest/gtest.h>

#include <cstring>

#include "base/files.h"
#include "proto/net.pb.h"
#include "tools/program.h"

namespace crema::tests {
namespace export_c_test {

// Two inputs, two results, and names that are no identifiers of C.
constexpr const char* kNet = R"(name: "small"
layer { name: "in" type: "Input" top: "a/1" top: "float" input_param {
  shape { dim: 1 dim: 3 dim: 12 dim: 12 } shape { dim: 1 dim: 4 dim: 10 dim: 10 } } }
layer { name: "conv" type: "Convolution" bottom: "a/1" top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "sum" type: "Eltwise" bottom: "conv" bottom: "float" top: "sum" }
layer { name: "relu" type: "ReLU" bottom: "sum" top: "sum" }
layer { name: "pool" type: "Pooling" bottom: "sum" top: "2 results" pooling_param { global_pooling: true } }
layer { name: "ip" type: "InnerProduct" bottom: "sum" top: "ip*/"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "prob" type: "Softmax" bottom: "ip*/" top: "main" }
)";

constexpr const char* kPictures = R"(name: "pictures"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 4 dim: 4 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 7 weight_filler { type: "gaussian" std: 0.1 } } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
)";

class ExportC : public testing::Test {
 protected:
  ExportC() {
    train("net", kNet, "dim: 1 dim: 3 dim: 12 dim: 12", "dim: 1 dim: 4 dim: 10 dim: 10");
    train("pictures", kPictures, "dim: 1 dim: 3 dim: 4 dim: 4", "");
  }
  // Writes the net, and its weights after an iteration on random data.
  void train(const std::string& name, const std::string& text, const std::string& first,
             const std::string& second) {
    folder_.write(name + ".prototxt", text);
    const size_t data = text.find("layer"), layers = text.find("layer", data + 5);
    const size_t prob = text.find("layer { name: \"prob\"");
    const bool two = !second.empty();
    folder_.write("train.prototxt",
                  cat("layer { name: \"in\" type: \"DummyData\" ",
                      two ? "top: \"a/1\" top: \"float\"" : "top: \"data\"",
                      " top: \"label\" dummy_data_param { shape { ", first, " } ",
                      two ? cat("shape { ", second, " }") : "", " shape { dim: 1 } ",
                      two ? "data_filler { type: \"gaussian\" } " : "",
                      "data_filler { type: \"gaussian\" } data_filler { type: \"constant\" } } }\n",
                      text.substr(layers, prob - layers),
                      "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"",
                      two ? "ip*/" : "ip", "\" bottom: \"label\" top: \"loss\" }\n"));
    folder_.write("solver.prototxt",
                  cat("net: \"train.prototxt\" base_lr: 0.01 lr_policy: \"fixed\" max_iter: 1 "
                      "random_seed: 1 snapshot_prefix: \"",
                      name, "\""));
    const Outcome trained = run(folder_, "train -solver solver.prototxt");
    ASSERT_EQ(trained.code, 0) << trained.err;
  }
  Outcome exported(const std::string& flags) {
    return run(folder_, cat("crema export -to c -model net.prototxt -weights net_iter_1.caffemodel "
                            "-output Net-1.c ",
                            flags));
  }
  Outcome pictures(const std::string& flags) {
    return run(folder_, cat("crema export -to c -model pictures.prototxt -weights "
                            "pictures_iter_1.caffemodel -output pictures.c ",
                            flags));
  }
  Outcome shell(const std::string& command) { return run_shell(folder_, command); }
  // The blobs of all layers.
  std::vector<std::vector<float>> blobs_of(const std::string& weights) {
    NetParameter net;
    EXPECT_TRUE(net.ParseFromString(folder_.read(weights)));
    std::vector<std::vector<float>> blobs;
    for (const LayerParameter& layer : net.layer())
      for (const BlobProto& blob : layer.blobs())
        blobs.emplace_back(blob.data().begin(), blob.data().end());
    return blobs;
  }

  Folder folder_;
};

constexpr const char* kStrict = "cc -std=c99 -Wall -Wextra -pedantic -Werror -O1 ";

TEST_F(ExportC, WritesIdentifiersAndVerifies) {
  const Outcome outcome = exported("");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.out, "2 blobs, 3 random inputs");
  expect_part(outcome.err, "multiplications with addition");
  const std::string header = folder_.read("Net-1.h");
  expect_part(header,
              "void net_1_run(const float *a_1, const float *float_blob, float *v2_results, float "
              "*main_blob);");
  expect_part(header, "#define NET_1_A_1_SIZE 432");
  expect_part(header, "/* Result \"2 results\", 1x4x1x1. */");
  const Outcome compiled = shell(cat(kStrict, "-c Net-1.c -o /dev/null"));
  EXPECT_EQ(compiled.code, 0) << compiled.err;
  const std::string first = folder_.read("Net-1.c");
  ASSERT_EQ(exported("-verify=false").code, 0);
  EXPECT_EQ(folder_.read("Net-1.c"), first);
}

// Files that compute other results are an error: here the compiler is one that changes a weight.
TEST_F(ExportC, FailsIfTheFilesComputeOtherResults) {
  folder_.write("cc",
                "#!/bin/sh\n[ \"$1\" = --version ] && echo other 1 && exit\n"
                "sed -i '/conv_0_blocks.*{/{n;s/ [^,]*,/ 9.f,/}' Net-1.c\nexec cc \"$@\"\n");
  const Outcome outcome = shell(
      "chmod +x cc && CC=./cc $TOOLS/crema export -to c -model net.prototxt -weights "
      "net_iter_1.caffemodel -output Net-1.c");
  EXPECT_EQ(outcome.code, 1);
  expect_part(outcome.err, "./cc computes other results than Crema");
}

TEST_F(ExportC, SaysWhyItIsNotVerified) {
  const Outcome outcome = shell(
      "CC=none/cc $TOOLS/crema export -to c -model net.prototxt -weights "
      "net_iter_1.caffemodel -output Net-1.c");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.err, "Not verified: there is no C compiler none/cc; set CC to one");
}

TEST_F(ExportC, PutsWeightsIntoAFile) {
  const Outcome outcome = exported("-output_weights net.bin");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.out, "2 blobs, 3 random inputs");
  expect_part(folder_.read("Net-1.h"), "void net_1_run(const float *weights, const float *a_1");
  expect_part(folder_.read("Net-1.h"), "#define NET_1_WEIGHTS_SIZE 1315\n");
  EXPECT_EQ(folder_.read("net.bin").size(), 4u * 1315);
  EXPECT_EQ(folder_.read("Net-1.c").find("static const float"), std::string::npos);
}

// Weights that training changes are not constant, and are the first ones of a file. The batch of training
// is the net's own.
TEST_F(ExportC, WritesTraining) {
  const std::string command =
      "crema export -to c -train -solver solver.prototxt -model train.prototxt -weights "
      "pictures_iter_1.caffemodel -output pictures.c ";
  for (const char* const weights : {"", "-output_weights net.bin"}) {
    const Outcome outcome = run(folder_, cat(command, "-train_batch 5 ", weights));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    expect_part(outcome.err, "Training: 3 iterations with random inputs; weights differ");
    const Outcome compiled = shell(cat(kStrict, "-c pictures.c -o /dev/null"));
    EXPECT_EQ(compiled.code, 0) << compiled.err;
    const std::string header = folder_.read("pictures.h");
    expect_part(header, "#define PICTURES_DATA_SIZE 48\n");
    expect_part(header, "#define PICTURES_TRAIN_DATA_SIZE 240\n");
    expect_part(header, "#define PICTURES_TRAIN_LABEL_SIZE 5\n");
    expect_part(header, "     ip.1, 7: 336\n");
    expect_part(header,
                *weights == '\0'
                    ? "extern float pictures_trained[PICTURES_TRAINED_SIZE];"
                    : "float pictures_train(float *weights, const float *data, const float");
  }
  EXPECT_EQ(folder_.read("net.bin").size(), 4u * 344);  // with the mark
  EXPECT_NE(run(folder_, cat(command, "-ram 4KiB")).err.find("freeze more layers"),
            std::string::npos);
  folder_.write("solver.prototxt", "net: \"train.prototxt\" base_lr: 0.01 type: \"Lion\"");
  expect_part(run(folder_, command).err, "the solver's type \"Lion\" is not written as C");
}

// The gradient of a bias before a BatchNorm is zero up to rounding, which differs.
TEST_F(ExportC, VerifiesTrainingWithoutWhatRoundingChanges) {
  folder_.write("norm.prototxt", R"(
layer { name: "in" type: "DummyData" top: "data" top: "label" dummy_data_param {
  shape { dim: 5 dim: 3 dim: 4 dim: 4 } shape { dim: 5 } data_filler { type: "gaussian" } data_filler { } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 7 weight_filler { type: "xavier" } } }
layer { name: "bn" type: "BatchNorm" bottom: "ip" top: "ip" }
layer { name: "last" type: "InnerProduct" bottom: "ip" top: "last"
  inner_product_param { num_output: 6 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "last" bottom: "label" top: "loss" }
)");
  ASSERT_EQ(
      run(folder_, "train -solver solver.prototxt -set net=norm.prototxt -set snapshot_prefix=norm")
          .code,
      0);
  const Outcome outcome =
      run(folder_,
          "crema export -to c -train -solver solver.prototxt -model norm.prototxt -weights "
          "norm_iter_1.caffemodel -output norm.c");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.err, "Training: 3 iterations with random inputs; weights differ");
  expect_part(folder_.read("norm.h"), "     bn.2, 1: 357\n");
}

// What a program stores becomes a .caffemodel: its array of trained weights, and a file of all weights,
// which here nothing has trained yet.
TEST_F(ExportC, TakesTrainedWeightsBack) {
  const std::string flags =
      " -solver solver.prototxt -model train.prototxt -weights pictures_iter_1.caffemodel ";
  const std::string back = "crema convert_weights" + flags;
  ASSERT_EQ(run(folder_, cat("crema export -to c -train -verify=false -output pictures.c", flags,
                             "-output_weights net.bin"))
                .code,
            0);
  ASSERT_EQ(run(folder_, back + "-from net.bin").code, 0);
  EXPECT_EQ(blobs_of("net.caffemodel"), blobs_of("pictures_iter_1.caffemodel"));

  ASSERT_EQ(
      run(folder_, cat("crema export -to c -train -verify=false -output pictures.c", flags)).code,
      0);
  folder_.write("learn.c",
                "#include <stdio.h>\n#include \"pictures.h\"\n"
                "static float data[PICTURES_TRAIN_DATA_SIZE] = {1, 2, 3}, label[1] = {4};\n"
                "int main(void) {\n  pictures_train(data, label, 0, 0.5f);\n"
                "  return fwrite(pictures_trained, sizeof pictures_trained, 1, stdout) != 1;\n}\n");
  ASSERT_EQ(shell(cat(kStrict, "pictures.c learn.c -o learn -lm && ./learn > learned.bin")).code,
            0);
  const Outcome outcome = run(folder_, back + "-from learned.bin");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string bytes = folder_.read("learned.bin");
  std::vector<float> stored(7 * 48 + 7);
  ASSERT_EQ(bytes.size(), 4 * (stored.size() + 1));
  std::memcpy(stored.data(), bytes.data(), 4 * stored.size());
  const std::vector<std::vector<float>> blobs = blobs_of("learned.caffemodel");
  ASSERT_EQ(blobs.size(), 2u);
  EXPECT_EQ(blobs[0], std::vector<float>(stored.begin(), stored.begin() + 7 * 48));
  EXPECT_EQ(blobs[1], std::vector<float>(stored.begin() + 7 * 48, stored.end()));
  EXPECT_NE(blobs, blobs_of("pictures_iter_1.caffemodel"));

  folder_.write("short.bin", bytes.substr(4));
  folder_.write("other.bin", bytes.substr(0, bytes.size() - 4) + std::string(4, 'x'));
  folder_.write("nan.bin", std::string(4, '\xff') + bytes.substr(4));
  const std::pair<const char*, const char*> rows[] = {
      {"-from short.bin", "short.bin has 1372 bytes, but expected are 1376: the 343 weights"},
      {"-from other.bin", "behind 343 weights, so these are of other layers"},
      {"-from nan.bin", "nan.bin: parameter ip.0 has the value "},
      {"", "-solver is for weights that a C program has trained"},
      {"-from learned.bin -names x", "-names is for PyTorch's weights"}};
  for (const auto& [from, says] : rows) {
    const Outcome refused = run(folder_, cat(back, from, " -output x.caffemodel"));
    EXPECT_EQ(refused.code, 1) << from;
    expect_part(refused.err, says);
    EXPECT_FALSE(folder_.has("x.caffemodel")) << from;
  }
}

// Branches that are concatenated twice, a residual whose operands are read again, and views.
constexpr const char* kBranches = R"(name: "branches"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 4 dim: 4 } } }
layer { name: "a" type: "Convolution" bottom: "data" top: "a" convolution_param { num_output: 2 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "b" type: "Convolution" bottom: "a" top: "b" convolution_param { num_output: 2 kernel_size: 1 weight_filler { type: "xavier" } } }
layer { name: "ab" type: "Concat" bottom: "a" bottom: "b" top: "ab" }
layer { name: "c" type: "Convolution" bottom: "ab" top: "c" convolution_param { num_output: 4 kernel_size: 3 pad: 1 group: 2 weight_filler { type: "xavier" } } }
layer { name: "abc" type: "Concat" bottom: "ab" bottom: "c" bottom: "b" top: "abc" }
layer { name: "sum" type: "Eltwise" bottom: "ab" bottom: "c" top: "sum" }
layer { name: "relu" type: "ReLU" bottom: "sum" top: "relu" }
layer { name: "again" type: "Eltwise" bottom: "relu" bottom: "sum" top: "again" eltwise_param { coeff: 1 coeff: -2 } }
layer { name: "all" type: "Concat" bottom: "again" bottom: "abc" top: "all" }
layer { name: "flat" type: "Flatten" bottom: "all" top: "flat" }
layer { name: "ip" type: "InnerProduct" bottom: "flat" top: "ip" inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
)";

TEST_F(ExportC, SharesMemory) {
  train("branches", kBranches, "dim: 1 dim: 3 dim: 4 dim: 4", "");
  const Outcome outcome = run(folder_,
                              "crema export -to c -model branches.prototxt -weights "
                              "branches_iter_1.caffemodel -output branches.c -tolerance 1e-5");
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const std::string source = folder_.read("branches.c");
  // b is copied once, as the third part of abc; all other parts are computed where they belong.
  size_t copies = 0;
  for (size_t at = source.find("copy("); at != std::string::npos; at = source.find("copy(", at + 1))
    copies += source.compare(at - 1, 1, " ") == 0 && source.compare(at, 6, "copy(a") == 0 ? 1 : 0;
  EXPECT_EQ(copies, 1u);
  // 14 channels of 16 values, and the patches of `a`: 27 taps for 16 positions. Nothing else is alive.
  expect_part(folder_.read("branches.h"),
              cat("#define BRANCHES_ARENA_SIZE ", 4 * (14 * 16 + 27 * 16), "\n"));
}

TEST_F(ExportC, TakesABatch) {
  const Outcome outcome = pictures("-batch 2");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_part(folder_.read("pictures.h"), "#define PICTURES_DATA_SIZE 96");
  expect_part(folder_.read("pictures.h"), "#define PICTURES_PROB_SIZE 14");
}

// Blue, green, red, minus means, times a scale, from a picture of another size.
TEST_F(ExportC, ClassifiesAPicture) {
  folder_.write("names.txt", "ant\nbee \"b\"\ncat\ndog\neel\nfox\ngnu\n");
  const std::string prepared = "-mean 10,20,30 -scale 0.02 -resize 4x4";
  const Outcome outcome = pictures(cat("-main -labels names.txt ", prepared));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::string pixels;
  for (int i = 0; i < 4 * 4 * 3; ++i) pixels += static_cast<char>(i * 37 % 256);
  folder_.write("a.ppm", cat("P6\n# a comment\n4 4\n255\n", pixels));
  const Outcome made =
      shell(cat(kStrict, "pictures.c pictures_main.c -o classify -lm && ./classify a.ppm"));
  ASSERT_EQ(made.code, 0) << made.err;
  const Outcome crema = run(
      folder_, cat("crema classify -model pictures.prototxt -weights pictures_iter_1.caffemodel "
                   "-labels names.txt ",
                   prepared, " a.ppm"));
  ASSERT_EQ(crema.code, 0) << crema.err;
  // "0.4657  dog" here is 0.4657 "dog" there.
  const std::vector<std::string> lines = split(made.out, '\n');
  ASSERT_EQ(lines.size(), 6u) << made.out;
  for (size_t i = 0; i < 5; ++i) {
    const size_t gap = lines[i].find("  ");
    expect_part(crema.out, cat(lines[i].substr(0, gap), " \"", lines[i].substr(gap + 2), "\""));
  }
  EXPECT_EQ(shell("./classify names.txt").code, 1);
}

// Nothing is written when something is wrong.
TEST_F(ExportC, RefusesMistakes) {
  folder_.write(
      "four.prototxt",
      "layer { name: \"in\" type: \"Input\" top: \"x\" input_param { shape { dim: 1 dim: 3 "
      "dim: 12 dim: 12 } } }\n"
      "layer { name: \"conv\" type: \"Convolution\" bottom: \"x\" top: \"y\" "
      "convolution_param { num_output: 4 kernel_size: 3 } }\n"
      "layer { name: \"shape\" type: \"Reshape\" bottom: \"y\" top: \"z\" reshape_param { "
      "shape { dim: 1 dim: 4 dim: 2 dim: 5 dim: 5 dim: 2 } } }\n"
      "layer { name: \"four\" type: \"Convolution\" bottom: \"z\" top: \"v\" "
      "convolution_param { num_output: 2 kernel_size: 2 } }\n");
  folder_.write(
      "select.prototxt",
      "layer { name: \"in\" type: \"Input\" top: \"loc\" top: \"conf\" top: \"priors\" "
      "input_param { shape { dim: 1 dim: 8 } shape { dim: 1 dim: 4 } shape { dim: 1 dim: 2 "
      "dim: 8 } } }\n"
      "layer { name: \"objects\" type: \"DetectionOutput\" bottom: \"loc\" bottom: \"conf\" "
      "bottom: \"priors\" top: \"y\" detection_output_param { num_classes: 2 "
      "nms_param { nms_threshold: 0.5 top_k: 2 } keep_top_k: 2 confidence_threshold: 0.1 } }\n");
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"-output a.txt", "-output a.txt: expected NET.c; the header becomes NET.h"},
      {"-ram 1KiB", "the net needs 6.5 KiB of RAM, but -ram 1KiB allows 1.0 KiB"},
      {"-flash 2KiB", "the net has 5.1 KiB of constants, but -flash 2KiB allows 2.0 KiB"},
      {"-ram 0.5", "-ram 0.5: expected a size with a unit, such as 256KiB or 1MiB"},
      {"-flash much", "-flash much: expected a size with a unit"},
      {"-main", "-main: the net has 2 inputs, and a picture fills one"},
      {"-model pictures.prototxt -weights pictures_iter_1.caffemodel -main -batch 3",
       "-main: the net takes 3 pictures at a time; use -batch 1"},
      {"-model four.prototxt -weights_mode match",
       "four.prototxt:4:1: layer \"four\": its image has 4 axes, and C functions have windows over "
       "one to three"},
      {"-model select.prototxt -weights_mode match",
       "select.prototxt:2:1: layer \"objects\": the size of its results depends on values "
       "(NonMaxSuppression), but memory in C is laid out beforehand; end the net before this "
       "layer, "
       "with -cut LAYER or -cut before_nms"},
      {"-output none/Net-1.c", "none/Net-1.c"},
      {"-output_weights none/net.bin", "none/net.bin"},
      {"-output_weights ./Net-1.h",
       "the header of -output Net-1.h and -output_weights ./Net-1.h are"},
      {"-preprocess inside", "-preprocess writes operators of ONNX"},
      {"-opset 17", "-opset is for -to onnx"},
      {"-dialect bvlc", "-dialect is for -to caffe"},
      {"-proof here", "-proof is for -to onnx and caffe"},
      {"-to onnx -output a.onnx -ram 1MiB",
       "-main, -ram, -flash, -train, -train_batch and -solver are for -to c"},
      {"-train", "-train needs a solver, which says how weights change: -solver FILE.prototxt"},
      {"-solver solver.prototxt", "-solver is for -train, which is missing"},
  };
  for (const auto& [flags, says] : rows) {
    const Outcome outcome = exported(flags);
    EXPECT_EQ(outcome.code, 1) << flags;
    ASSERT_EQ(outcome.errors().size(), 1u) << flags << outcome.err;
    expect_part(outcome.errors()[0], says);
    EXPECT_FALSE(folder_.has("Net-1.c")) << flags;
    EXPECT_FALSE(folder_.has("Net-1.h")) << flags;
  }
  EXPECT_EQ(exported("-ram 8KiB -flash 6KiB -verify=false").code, 0);
}

}  // namespace export_c_test
}  // namespace crema::tests
