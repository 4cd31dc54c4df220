// `crema export -to caffe` and `crema check -target`: the files, what they say of layers that a reader
// does not take, and the verification.
#include <gtest/gtest.h>

#include <set>

#include "base/files.h"
#include "data/lists/message_text.h"
#include "proto/net.pb.h"
#include "tools/program.h"

namespace crema::tests {
namespace dialect_test {

constexpr const char* kNet = R"(name: "small"
layer { name: "data" type: "DummyData" top: "data" top: "label" dummy_data_param {
  shape { dim: 8 dim: 3 dim: 12 dim: 12 } shape { dim: 8 }
  data_filler { type: "gaussian" } data_filler { type: "constant" value: 1 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" param { lr_mult: 2 }
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "bn" type: "BatchNorm" bottom: "conv" top: "conv" batch_norm_param { scale_bias: true } }
layer { name: "r6" type: "ReLU6" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool"
  pooling_param { kernel_size: 3 stride: 2 round_mode: FLOOR } }
layer { name: "act" type: "HardSwish" bottom: "pool" top: "pool" }
layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "drop" type: "Dropout" bottom: "ip" top: "ip" }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

class Dialects : public testing::Test {
 protected:
  Dialects() {
    folder_.write("net.prototxt", kNet);
    folder_.write("solver.prototxt",
                  "net: \"net.prototxt\" base_lr: 0.01 lr_policy: \"fixed\" max_iter: 2 "
                  "random_seed: 1 snapshot_prefix: \"a\"");
    EXPECT_EQ(run(folder_, "train -solver solver.prototxt").code, 0);
  }
  Outcome exported(const std::string& flags) {
    return run(folder_, cat("crema export -model net.prototxt -weights a_iter_2.caffemodel -to "
                            "caffe -output out.prototxt -output_weights out.caffemodel ",
                            flags));
  }
  NetParameter written() {
    NetParameter net;
    EXPECT_EQ(parse_message(folder_.read("out.prototxt"), &net), "");
    return net;
  }
  static std::string types(const NetParameter& net) {
    std::string all;
    for (const LayerParameter& layer : net.layer()) all += layer.type() + " ";
    return all;
  }
  const LayerParameter& layer(const NetParameter& net, const std::string& name) {
    for (const LayerParameter& layer : net.layer())
      if (layer.name() == name) return layer;
    ADD_FAILURE() << "no layer " << name << " among " << types(net);
    return LayerParameter::default_instance();
  }
  Folder folder_;
};

TEST_F(Dialects, WritesWhatCaffeReads) {
  const Outcome outcome = exported("-python false");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const NetParameter net = written();
  EXPECT_EQ(types(net),
            "Input Convolution ReLU Power ReLU Power Slice Silence Slice Silence Pooling Power "
            "ReLU Power ReLU Power Eltwise InnerProduct Softmax ");
  // The last layer of a rewrite has the layer's name, its top the blob's.
  EXPECT_EQ(layer(net, "r6").top(0), "conv");
  EXPECT_EQ(layer(net, "pool").bottom(0), "pool/slice_2_part0");
  EXPECT_EQ(layer(net, "act").top(0), "pool");
  EXPECT_EQ(layer(net, "act/relu_2").bottom(0), "act/power_2");
  EXPECT_FALSE(layer(net, "conv").convolution_param().has_weight_filler());
  EXPECT_EQ(layer(net, "conv").param_size(), 0);
  expect_part(outcome.out, "Crema from the files: ");
  expect_part(outcome.out, "net.prototxt:15:1");  // the place of a blob's layer
}

TEST_F(Dialects, ReadersDiffer) {
  ASSERT_EQ(exported("-dialect opencv4 -verify=false").code, 0);
  NetParameter net = written();
  EXPECT_EQ(types(net), "Input Convolution ReLU6 Pooling HardSwish InnerProduct Softmax ");
  EXPECT_FALSE(layer(net, "pool").pooling_param().ceil_mode());
  ASSERT_EQ(exported("-dialect nvcaffe -fold=false -verify=false").code, 0);
  net = written();
  EXPECT_TRUE(layer(net, "bn").batch_norm_param().scale_bias());
  ASSERT_EQ(exported("-dialect bvlc -fold=false -verify=false").code, 0);
  net = written();
  EXPECT_EQ(layer(net, "bn").type(), "Scale");
  EXPECT_EQ(layer(net, "bn/batchnorm").type(), "BatchNorm");
}

// Stochastic depth multiplies by a number of each image that is 1 in inference.
TEST_F(Dialects, LeavesOutWhatChangesNothing) {
  folder_.write("deep.prototxt",
                "layer { name: \"data\" type: \"Input\" top: \"data\" input_param { shape { dim: 1 "
                "dim: 3 dim: 12 dim: 12 } } }\n"
                "layer { name: \"conv\" type: \"Convolution\" bottom: \"data\" top: \"conv\" "
                "convolution_param { num_output: 4 kernel_size: 3 } }\n"
                "layer { name: \"number\" type: \"Reduction\" bottom: \"conv\" top: \"number\" "
                "reduction_param { axis: 1 } }\n"
                "layer { name: \"one\" type: \"Power\" bottom: \"number\" top: \"number\" "
                "power_param { scale: 0 shift: 1 } }\n"
                "layer { name: \"depth\" type: \"Scale\" bottom: \"conv\" bottom: \"number\" top: "
                "\"y\" scale_param { axis: 0 } }\n"
                "layer { name: \"relu\" type: \"ReLU\" bottom: \"y\" top: \"y\" }\n");
  ASSERT_EQ(exported("-model deep.prototxt -python false").code, 0);
  EXPECT_EQ(types(written()), "Input Convolution ReLU ");
}

TEST_F(Dialects, LeavesNothingAfterAMistake) {
  folder_.write("gelu.prototxt",
                "layer { name: \"data\" type: \"Input\" top: \"data\" input_param { shape { dim: 1 "
                "dim: 3 dim: 12 dim: 12 } } }\n"
                "layer { name: \"conv\" type: \"Convolution\" bottom: \"data\" top: \"conv\" "
                "convolution_param { num_output: 4 kernel_size: 3 } }\n"
                "  layer { name: \"act\" type: \"GELU\" bottom: \"conv\" top: \"y\" }\n");
  const std::pair<const char*, const char*> rows[] = {
      {"-to tflite", "-to tflite: expected onnx, caffe or c"},
      {"-dialect bvcl", "-dialect bvcl: there is no such dialect (did you mean \"bvlc\"?)"},
      {"-output_weights ''", "-output_weights NET.caffemodel is needed"},
      {"-output out.caffemodel", "-output and -output_weights are both out.caffemodel"},
      {"-output ./out.caffemodel",
       "-output ./out.caffemodel and -output_weights out.caffemodel are "
       "one file"},
      {"-output net.prototxt",
       "-output and -model are both net.prototxt, which would be overwritten"},
      {"-output_weights ./a_iter_2.caffemodel",
       "-output_weights ./a_iter_2.caffemodel and -weights a_iter_2.caffemodel are one file"},
      {"-opset 13", "-opset is for -to onnx"},
      {"-labels none.txt", "none.txt: cannot open"},
      {"-scale 0", "-scale 0: expected a factor other than 0"},
      {"-scale nan", "-scale=nan: expected a number"},
      {"-mean 1,nan,3", "-mean 1,nan,3: expected numbers, such as 104,117,123"},
      {"-tolerance -1", "-tolerance -1: expected a fraction from 0"},
      {"-proof net.prototxt/a", "net.prototxt is no folder"},
      {"-to onnx -output_weights ''  -dialect ssd", "-dialect is for -to caffe"},
      {"-to onnx", "-output_weights is for -to caffe"},
      {"-model gelu.prototxt",
       "gelu.prototxt:3:3: layer \"act\": bvlc has no layer of type GELU, and none of its layers "
       "computes the error function; write gelu_param { approximate: true }"},
  };
  for (const auto& [flags, says] : rows) {
    const Outcome outcome = exported(flags);
    EXPECT_EQ(outcome.code, 1) << flags;
    ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
    expect_part(outcome.errors()[0], says);
    EXPECT_FALSE(file_exists(folder_.file("out.prototxt"))) << flags;
    EXPECT_FALSE(file_exists(folder_.file("out.caffemodel"))) << flags;
  }
}

// The weights of a net that cannot be written would be those of another one.
TEST_F(Dialects, KeepsOldFilesAfterAMistake) {
  folder_.write("out.caffemodel", "old");
  folder_.write("out.prototxt", "old");
  EXPECT_EQ(exported("-output none/out.prototxt").code, 1);
  EXPECT_EQ(folder_.read("out.caffemodel"), "old");
  EXPECT_EQ(exported("-output_weights none/out.caffemodel").code, 1);
  EXPECT_EQ(folder_.read("out.prototxt"), "old");
}

// Readers find weights by the layers' names.
TEST_F(Dialects, GivesTwoLayersOfOneNameTwo) {
  folder_.write("twins.prototxt",
                "layer { name: \"data\" type: \"Input\" top: \"data\" input_param { shape { dim: 1 "
                "dim: 3 dim: 12 dim: 12 } } }\n"
                "layer { name: \"conv\" type: \"Convolution\" bottom: \"data\" top: \"conv\" "
                "convolution_param { num_output: 4 kernel_size: 3 } }\n"
                "layer { name: \"conv\" type: \"ReLU6\" bottom: \"conv\" top: \"y\" }\n"
                "layer { name: \"conv\" type: \"ReLU\" bottom: \"y\" top: \"z\" }\n");
  const Outcome outcome = exported("-model twins.prototxt -python false");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::set<std::string> names;
  const NetParameter net = written();
  for (const LayerParameter& layer : net.layer()) names.insert(layer.name());
  EXPECT_EQ(static_cast<int>(names.size()), net.layer_size());
  EXPECT_EQ(layer(net, "conv").type(), "Convolution");
}

// A Python that computes other results, in place of one with OpenCV or ncnn.
TEST_F(Dialects, FailsIfItsReaderDisagrees) {
  const std::string command =
      "chmod +x python && \"$TOOLS\"/crema export -model net.prototxt -weights a_iter_2.caffemodel "
      "-to caffe -output out.prototxt -output_weights out.caffemodel -python ./python -dialect ";
  for (const auto& [runtime, dialect] : {std::pair{"OpenCV", "opencv4"}, {"ncnn", "ncnn"}}) {
    folder_.write("python", cat("#!/bin/sh\nhead -c 100000 /dev/zero >\"$2/fake\"\nprintf '",
                                runtime, "\\tfake\\t4\\t\\n'\n"));
    const Outcome reader = run_shell(folder_, command + dialect);
    EXPECT_EQ(reader.code, 1) << reader.err;
    expect_part(reader.err, cat(runtime, " computes other results than Crema"));
    const Outcome caffe = run_shell(folder_, command + "bvlc");
    EXPECT_EQ(caffe.code, 0) << caffe.err;
    expect_part(caffe.err,
                cat(runtime, " computes other results; write for it with -dialect ", dialect));
  }
}

// ncnn's global poolings lose the axes of the image.
TEST_F(Dialects, WritesGlobalPoolingsForNcnnAsWindows) {
  folder_.write("global.prototxt",
                "layer { name: \"data\" type: \"Input\" top: \"data\" input_param { shape { dim: 1 "
                "dim: 3 dim: 6 dim: 4 } } }\n"
                "layer { name: \"all\" type: \"Pooling\" bottom: \"data\" top: \"all\" "
                "pooling_param { pool: AVE global_pooling: true } }\n"
                "layer { name: \"wide\" type: \"Pooling\" bottom: \"data\" top: \"wide\" "
                "pooling_param { pool: MAX kernel_h: 6 kernel_w: 4 stride: 2 } }\n");
  for (const char* dialect : {"ncnn", "bvlc"}) {
    ASSERT_EQ(
        exported(cat("-model global.prototxt -weights_mode match -python false -dialect ", dialect))
            .code,
        0);
    const NetParameter net = written();
    EXPECT_EQ(types(net), "Input Pooling Pooling ");
    const bool windows = std::string(dialect) == "ncnn";
    EXPECT_EQ(layer(net, "all").pooling_param().global_pooling(), !windows);
    EXPECT_EQ(layer(net, "all").pooling_param().kernel_h(), windows ? 6u : 0u);
    EXPECT_EQ(layer(net, "wide").pooling_param().kernel_w(), 4u);
  }
}

TEST_F(Dialects, HelpAndCompletionNameThemAll) {
  const std::string error = exported("-dialect none").err;
  const size_t from = error.find("it takes ") + 9;
  const std::string names = error.substr(from, error.find('\n', from) - from);
  const std::string help = run(folder_, "crema help export").out;
  const std::string bash = read_text(CREMA_TEST_DATA "/../tools/completion/crema.bash"),
                    zsh = read_text(CREMA_TEST_DATA "/../tools/completion/_crema");
  EXPECT_GE(split(names, ',').size(), 7u) << error;
  for (const std::string& name : split(names, ',')) {
    for (const std::string& text : {help, bash, zsh}) expect_part(text, std::string(trim(name)));
  }
}

TEST_F(Dialects, CheckListsWhatATargetDoesNotTake) {
  const Outcome fine = run(folder_,
                           "crema check -model net.prototxt -target opencv4 -set "
                           "layer[bn].batch_norm_param.scale_bias=false");
  EXPECT_EQ(fine.code, 0) << fine.err;
  expect_part(fine.out,
              "net.prototxt:10:44: note: layer \"pool\" (Pooling): opencv4 does not read "
              "pooling_param.round_mode; it becomes Pooling\n");
  folder_.write("plain.prototxt",
                "layer { name: \"data\" type: \"Input\" top: \"data\" input_param { shape { dim: 1 "
                "dim: 3 dim: 4 dim: 4 } } }\n"
                "layer { name: \"act\" type: \"ReLU\" bottom: \"data\" top: \"a\" }\n");
  EXPECT_EQ(run(folder_, "crema check -model plain.prototxt -target bvlc").out,
            "bvlc takes every layer of plain.prototxt\nno problems found\n");
  folder_.write("gelu.prototxt",
                "layer { name: \"data\" type: \"Input\" top: \"data\" input_param { shape { dim: 1 "
                "dim: 3 dim: 4 dim: 4 } } }\n"
                "layer { name: \"r6\" type: \"ReLU6\" bottom: \"data\" top: \"a\" }\n"
                "layer { name: \"act\" type: \"GELU\" bottom: \"a\" top: \"b\" }\n"
                "layer { name: \"flip\" type: \"Reverse\" bottom: \"b\" top: \"c\" "
                "reverse_param { axis: 1 } }\n");
  const Outcome refused = run(folder_, "crema check -model gelu.prototxt -target bvlc");
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(refused.out,
            "gelu.prototxt:2:1: note: layer \"r6\" (ReLU6): bvlc has no layer of type ReLU6; it "
            "becomes ReLU, Power, ReLU, Power\n"
            "gelu.prototxt:3:1: error: layer \"act\" (GELU): bvlc has no layer of type GELU, and "
            "none of its layers computes the error function; write gelu_param { approximate: true "
            "}, and train a little with it\n"
            "gelu.prototxt:4:1: note: layer \"flip\" (Reverse): bvlc has no layer of type Reverse; "
            "it becomes Slice, Concat, Reshape\n"
            "2 notes, 1 error\n");
  // Of a field that is the reason, its own position.
  folder_.write("dilated.prototxt",
                "layer { name: \"data\" type: \"Input\" top: \"data\" input_param { shape { dim: 1 "
                "dim: 3 dim: 8 dim: 8 } } }\n"
                "layer { name: \"pool\" type: \"Pooling\" bottom: \"data\" top: \"a\"\n"
                "  pooling_param { kernel_size: 3\n"
                "    dilation: 2 } }\n");
  expect_part(run(folder_, "crema check -model dilated.prototxt -target bvlc").out,
              "dilated.prototxt:4:5: error: layer \"pool\" (Pooling): ");
}

}  // namespace dialect_test
}  // namespace crema::tests
