// `crema export`: the file, what it says of mistakes, and its verification by a runtime.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/files.h"
#include "proto/onnx.pb.h"
#include "tools/program.h"

namespace crema::tests {
namespace export_verb_test {

constexpr const char* kNet = R"(name: "small"
layer { name: "data" type: "DummyData" top: "data" top: "label" dummy_data_param {
  shape { dim: 8 dim: 1 dim: 6 dim: 6 } shape { dim: 8 }
  data_filler { type: "gaussian" } data_filler { type: "constant" value: 1 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 2 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "bn" type: "BatchNorm" bottom: "conv" top: "conv" }
layer { name: "scale" type: "Scale" bottom: "conv" top: "conv" scale_param { bias_term: true } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "drop" type: "Dropout" bottom: "ip" top: "ip" }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

class ExportVerb : public testing::Test {
 protected:
  ExportVerb() {
    folder_.write("net.prototxt", kNet);
    folder_.write("solver.prototxt",
                  "net: \"net.prototxt\" base_lr: 0.01 lr_policy: \"fixed\" max_iter: 2 "
                  "random_seed: 1 snapshot_prefix: \"a\"");
    EXPECT_EQ(run(folder_, "train -solver solver.prototxt").code, 0);
  }
  Outcome exported(const std::string& flags) {
    return run(folder_,
               cat("crema export -model net.prototxt -weights a_iter_2.caffemodel ", flags));
  }
  onnx::ModelProto model(const std::string& name) {
    onnx::ModelProto model;
    EXPECT_TRUE(model.ParseFromString(folder_.read(name)));
    return model;
  }
  static std::vector<std::string> operators(const onnx::ModelProto& model) {
    std::vector<std::string> all;
    for (const onnx::NodeProto& node : model.graph().node()) all.push_back(node.op_type());
    return all;
  }
  Folder folder_;
};

using Names = std::vector<std::string>;

TEST_F(ExportVerb, WritesWhatIsNeededInInference) {
  ASSERT_EQ(exported("-output a.onnx -verify=false").code, 0);
  const onnx::ModelProto made = model("a.onnx");
  EXPECT_EQ(made.ir_version(), 8);
  EXPECT_EQ(made.opset_import(0).version(), 17);
  EXPECT_EQ(operators(made), (Names{"Conv", "Relu", "Flatten", "Gemm", "Softmax"}));
  const auto& input = made.graph().input(0);
  EXPECT_EQ(input.name(), "data");
  EXPECT_EQ(input.type().tensor_type().shape().dim(0).dim_param(), "N");
  EXPECT_EQ(input.type().tensor_type().shape().dim(2).dim_value(), 6);
  EXPECT_EQ(made.graph().output(0).name(), "prob");
  // In-place layers: the last version has the blob's name.
  EXPECT_EQ(made.graph().node(1).output(0), "conv");
  EXPECT_EQ(made.graph().node(0).doc_string(), "net.prototxt:5:1");
}

TEST_F(ExportVerb, FlagsChangeOpsetBatchAndFolding) {
  ASSERT_EQ(exported("-output a.onnx -verify=false -opset 11 -batch 4 -fold=false").code, 0);
  const onnx::ModelProto made = model("a.onnx");
  EXPECT_EQ(made.ir_version(), 6);
  EXPECT_EQ(made.opset_import(0).version(), 11);
  EXPECT_EQ(operators(made), (Names{"Conv", "BatchNormalization", "Mul", "Add", "Relu", "Flatten",
                                    "Gemm", "Softmax"}));
  EXPECT_EQ(made.graph().input(0).type().tensor_type().shape().dim(0).dim_value(), 4);
}

TEST_F(ExportVerb, EndsBeforeALayer) {
  ASSERT_EQ(exported("-output a.onnx -verify=false -cut ip").code, 0);
  const onnx::ModelProto made = model("a.onnx");
  EXPECT_EQ(operators(made), (Names{"Conv", "Relu"}));
  EXPECT_EQ(made.graph().output(0).name(), "conv");
}

TEST_F(ExportVerb, SaysHowPicturesBecomeInputs) {
  folder_.write("names.txt", "cat\ndog\nfox\n");
  folder_.write("deploy.prototxt",
                "# crema: input { name: \"data\" channels: GRAY transform_param { scale: 0.5 "
                "mean_value: 104 } }\n"
                "layer { name: \"data\" type: \"Input\" top: \"data\" input_param { shape { "
                "dim: 1 dim: 1 dim: 6 dim: 6 } } }\n"
                "layer { name: \"conv\" type: \"Convolution\" bottom: \"data\" top: \"conv\" "
                "convolution_param { num_output: 2 kernel_size: 3 } }\n");
  ASSERT_EQ(exported("-model deploy.prototxt -output a.onnx -verify=false -labels names.txt").code,
            0);
  std::map<std::string, std::string> said;
  const onnx::ModelProto made = model("a.onnx");
  for (const auto& entry : made.metadata_props()) said[entry.key()] = entry.value();
  EXPECT_EQ(said, (std::map<std::string, std::string>{{"data.channels", "GRAY"},
                                                      {"data.mean", "104"},
                                                      {"data.scale", "0.5"},
                                                      {"labels", "cat\ndog\nfox"}}));
}

TEST_F(ExportVerb, LeavesExtentsOpenThatDependOnData) {
  folder_.write(
      "deploy.prototxt",
      "layer { name: \"x\" type: \"Input\" top: \"x\" input_param { shape { dim: 4 dim: 32 } } }\n"
      "layer { name: \"s\" type: \"Input\" top: \"s\" input_param { shape { dim: 4 } } }\n"
      "layer { name: \"y\" type: \"TanH\" bottom: \"x\" top: \"y\" }\n"
      "layer { name: \"chosen\" type: \"Filter\" bottom: \"x\" bottom: \"y\" bottom: "
      "\"s\" top: \"a\" top: \"b\" }\n"
      "layer { name: \"sum\" type: \"Eltwise\" bottom: \"a\" bottom: \"b\" top: \"sum\" }\n"
      "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"sum\" top: \"result\" "
      "inner_product_param { num_output: 3 } }\n");
  const Outcome outcome = exported("-model deploy.prototxt -output a.onnx -verify=false");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const onnx::ModelProto made = model("a.onnx");
  const auto& shape = made.graph().output(0).type().tensor_type().shape();
  EXPECT_EQ(shape.dim(0).dim_param(), "result.0");
  EXPECT_EQ(shape.dim(1).dim_value(), 3);
}

struct Mistake {
  const char *flags, *says;
};

TEST_F(ExportVerb, LeavesNothingAfterAMistake) {
  folder_.write(
      "ring.prototxt",
      cat(kNet, "layer { name: \"rois\" type: \"Parameter\" top: \"rois\" ",
          "parameter_param { shape { dim: 1 dim: 9 } } }\n",
          "layer { name: \"ring\" type: \"RegionPooling\" bottom: \"conv\" ",
          "bottom: \"rois\" top: \"ring\" region_pooling_param { pooled_h: 1 ", "pooled_w: 1 } }"));
  const std::string layers = kNet, input =
                                       cat("layer { name: \"data\" type: \"Input\" top: \"data\" "
                                           "input_param { shape { dim: 1 dim: 1 dim: "
                                           "6 dim: 6 } } }\n",
                                           layers.substr(layers.find("layer { name: \"conv\"")));
  const auto write = [&](const char* file, const char* preparation) {
    folder_.write(file, cat("# crema: input { name: \"data\" channels: GRAY ", preparation, " }\n",
                            input.substr(0, input.find("layer { name: \"loss\""))));
  };
  write("short.prototxt", "short_side: 8");
  write("noisy.prototxt", "transform_param { noise_param { hist_eq: true } }");
  const Mistake rows[] = {
      {"", "-output NET.onnx is needed"},
      {"-output a.prototxt",
       "a.prototxt: this would be an ONNX model; -to caffe writes a prototxt"},
      {"-output a.onnx -opset 99", "opset 99 is too new; Crema writes opsets 11 to 21"},
      {"-output a.onnx -opset 9", "opset 9 is too old; Crema writes opsets 11 to 21"},
      {"-output a.onnx -batch -1", "-batch -1: expected a positive number"},
      {"-output a.onnx -cut none", "the net for inference has no layer \"none\""},
      {"-output a.onnx -cut conv", "nothing is left of the net before its layer \"conv\""},
      {"-output a.onnx -cut before_nms", "the net has no layer that selects objects"},
      {"-output a.onnx -weights none.caffemodel", "none.caffemodel"},
      {"-output a.onnx -preprocess all", "-preprocess all: expected inside or resized"},
      {"-output a.onnx -preprocess inside",
       "net.prototxt does not say how its inputs are made of pictures"},
      {"-output net.prototxt", "-output net.prototxt: this would be an ONNX model"},
      {"-output a_iter_2.caffemodel", "-output and -weights are both a_iter_2.caffemodel"},
      {"-output a.onnx -tolerance nan", "-tolerance=nan: expected a number"},
      {"-output a.onnx -proof net.prototxt", "net.prototxt is no folder"},
      {"-output a.onnx -proof p -verify=false", "-proof keeps what -verify finds"},
      {"-output a.onnx -model short.prototxt -preprocess resized",
       "the smaller side of pictures becomes 8, so they have no one size"},
      {"-output a.onnx -model noisy.prototxt -preprocess inside",
       "its transform_param has more than crop, mean and scale"},
      {"-output a.onnx -model ring.prototxt",
       "ring.prototxt:15:1: layer \"ring\": a layer of type RegionPooling cannot be written"},
  };
  for (const Mistake& row : rows) {
    const Outcome outcome = exported(row.flags);
    EXPECT_EQ(outcome.code, 1) << row.flags;
    ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
    expect_part(outcome.errors()[0], row.says);
    EXPECT_FALSE(file_exists(folder_.file("a.onnx"))) << row.flags;
  }
}

// Inputs and results are those of ONNX's test data; the last version of a folder stays.
TEST_F(ExportVerb, KeepsWhatItVerified) {
  folder_.write("python", "#!/bin/sh\nprintf 'Fake\\tfake\\t1\\tcannot\\n'\n");
  folder_.write("made/proof/test_data_set_0/input_1.pb", "of a model with two inputs");
  folder_.write("made/proof/test_data_set_0/mine.txt", "kept");
  const Outcome outcome =
      run_shell(folder_,
                "chmod +x python && \"$TOOLS\"/crema export -model net.prototxt -weights "
                "a_iter_2.caffemodel -output a.onnx -python ./python -proof made/proof");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  onnx::TensorProto input, output;
  for (const int draw : {0, 1, 2}) {
    const std::string folder = cat("made/proof/test_data_set_", draw, "/");
    ASSERT_TRUE(input.ParseFromString(folder_.read(folder + "input_0.pb")));
    ASSERT_TRUE(output.ParseFromString(folder_.read(folder + "output_0.pb")));
    EXPECT_EQ(input.name(), "data");
    EXPECT_EQ(input.raw_data().size(), 36 * sizeof(float));
    EXPECT_EQ(output.name(), "prob");
    EXPECT_EQ(output.dims(1), 3);
    EXPECT_EQ(output.raw_data().size(), 3 * sizeof(float));
  }
  expect_part(folder_.read("made/proof/verification.tsv"), "runtime\tversion\tlayer");
  EXPECT_FALSE(folder_.has("made/proof/test_data_set_0/input_1.pb"));
  EXPECT_TRUE(folder_.has("made/proof/test_data_set_0/mine.txt"));
}

// Blobs of one name are compared, and results by their order.
TEST_F(ExportVerb, ComparesAModelWithANet) {
  ASSERT_EQ(exported("-output a.onnx -verify=false").code, 0);
  folder_.write("python",
                "#!/bin/sh\ncp \"$2/job.tsv\" job.tsv\nhead -c 100000 /dev/zero >\"$2/fake\"\n"
                "printf 'Fake\\tfake\\t1\\t\\n'\n");
  const std::string compare =
      "chmod +x python && \"$TOOLS\"/crema compare a.onnx net.prototxt -python ./python ";
  const Outcome outcome = run_shell(folder_, compare + "-weights a_iter_2.caffemodel");
  EXPECT_EQ(outcome.code, 1);
  expect_part(outcome.err, "Fake computes other results than Crema");
  const std::string both = run_shell(folder_, compare + "-weights a_iter_2.caffemodel 2>&1").out;
  EXPECT_LT(both.find("largest difference"), both.find("in the table above")) << both;
  for (const char* line : {"input\tdata\t1,1,6,6\n", "output\tconv\n", "output\tprob\n",
                           "model_input\tdata\t1\nmodel_output\tprob\nmodel_output\tconv"})
    expect_part(folder_.read("job.tsv"), line);
  expect_part(run_shell(folder_, compare + "-weights a_iter_2.caffemodel -batch -1").err,
              "-batch -1: expected a positive number");
  const Outcome none = run_shell(folder_, compare + "-weights a_iter_2.caffemodel -python false");
  EXPECT_EQ(none.code, 1);
  expect_part(none.err, "no runtime has run a.onnx");
  expect_part(run_shell(folder_, compare).err, "the net's weights are needed");
  onnx::ModelProto of_bytes = model("a.onnx");
  of_bytes.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::UINT8);
  folder_.write("a.onnx", of_bytes.SerializeAsString());
  expect_part(run_shell(folder_, compare + "-weights a_iter_2.caffemodel").err,
              "the model's input data takes pictures as bytes");
}

// A second input has the batch's extent by chance: only the first one grows.
TEST_F(ExportVerb, TellsTheBatchFromOtherExtents) {
  folder_.write(
      "two.prototxt",
      "layer { name: \"in\" type: \"Input\" top: \"x\" top: \"once\" input_param { shape { "
      "dim: 1 dim: 3 } shape { dim: 1 dim: 3 } } }\n"
      "layer { name: \"flat\" type: \"Reshape\" bottom: \"once\" top: \"flat\" "
      "reshape_param { shape { dim: 3 } } }\n"
      "layer { name: \"sum\" type: \"Bias\" bottom: \"x\" bottom: \"flat\" top: \"sum\" }\n");
  const Outcome outcome =
      exported("-model two.prototxt -weights_mode match -output a.onnx -verify=false");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const onnx::GraphProto graph = model("a.onnx").graph();
  EXPECT_EQ(graph.input(0).type().tensor_type().shape().dim(0).dim_param(), "N");
  EXPECT_EQ(graph.input(1).type().tensor_type().shape().dim(0).dim_value(), 1);
}

TEST_F(ExportVerb, GivesRuntimesNamesWithTabsAndLineBreaks) {
  std::string net = kNet;
  for (size_t at = 0; (at = net.find("\"conv\"", at)) != std::string::npos; ++at)
    net.replace(at, 6, R"("co\t\nnv")");
  folder_.write("odd.prototxt", net);
  folder_.write("python", "#!/bin/sh\ncp \"$2/job.tsv\" job.tsv\nexit 1\n");
  run_shell(folder_,
            "chmod +x python && \"$TOOLS\"/crema export -model odd.prototxt -weights "
            "a_iter_2.caffemodel -output a.onnx -python ./python");
  expect_part(folder_.read("job.tsv"), R"(co\t\nnv)"
                                       "\n");
}

TEST_F(ExportVerb, SaysWhenNoRuntimeIsThere) {
  const Outcome outcome = exported("-output a.onnx -python false");
  EXPECT_EQ(outcome.code, 0);
  expect_part(outcome.err, "Not verified: false");
}

// Modules in place of runtimes: one ends the process, one cannot load the model.
TEST_F(ExportVerb, GoesOnAfterARuntimeThatCrashes) {
  folder_.write("modules/onnxruntime.py",
                "import os, signal\n__version__ = '1'\nos.kill(os.getpid(), signal.SIGKILL)\n");
  folder_.write("modules/numpy.py", "");
  folder_.write("modules/openvino.py", "__version__ = '2'\n");
  folder_.write("modules/cv2.py", "raise ImportError\n");
  folder_.write("modules/ncnn.py", "raise ImportError\n");
  const Outcome outcome = run_shell(
      folder_,
      "PYTHONPATH=modules \"$TOOLS\"/crema export -model net.prototxt -weights a_iter_2.caffemodel "
      "-output a.onnx -python python3");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.err, "ONNX Runtime cannot run the model: it crashes with signal 9");
  expect_part(outcome.err, "OpenVINO 2 cannot run the model: AttributeError");
}

// A runtime whose results differ: a program in place of Python.
TEST_F(ExportVerb, FailsWhenARuntimeDisagrees) {
  folder_.write("python",
                "#!/bin/sh\n"
                "head -c 100000 /dev/zero >\"$2/fake\"\n"
                "printf 'Fake\\tfake\\t1\\t\\n'\n");
  const Outcome outcome =
      run_shell(folder_,
                "chmod +x python && \"$TOOLS\"/crema export -model net.prototxt -weights "
                "a_iter_2.caffemodel -output a.onnx -python ./python");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  expect_part(outcome.err, "Fake computes other results than Crema");
  expect_part(outcome.out, "prob");
}

// A runtime that gives the same detections in another order agrees; with another box it does not.
TEST_F(ExportVerb, ComparesDetectionsInAnyOrder) {
  folder_.write("boxes.prototxt",
                "layer { name: \"in\" type: \"Input\" top: \"loc\" top: \"conf\" top: \"prior\" "
                "input_param { shape { dim: 1 dim: 32 } shape { dim: 1 dim: 24 } shape { dim: 1 "
                "dim: 2 dim: 32 } } }\n"
                "layer { name: \"found\" type: \"DetectionOutput\" bottom: \"loc\" bottom: "
                "\"conf\" bottom: \"prior\" top: \"found\" detection_output_param { "
                "num_classes: 3 nms_param { nms_threshold: 0.9 } } }\n");
  folder_.write("python", "#!/bin/sh\ncat answer >\"$2/fake\"\nprintf 'Fake\\tfake\\t1\\t\\n'\n");
  folder_.write("answer", "");
  const std::string command =
      "chmod +x python && \"$TOOLS\"/crema export -model boxes.prototxt -weights "
      "a_iter_2.caffemodel -weights_mode match -output a.onnx -python ./python -proof proof";
  EXPECT_EQ(run_shell(folder_, command).code, 1);
  for (const float moved : {0.f, 1.f}) {
    std::string answer;
    for (const int draw : {0, 1, 2}) {
      onnx::TensorProto found;
      ASSERT_TRUE(
          found.ParseFromString(folder_.read(cat("proof/test_data_set_", draw, "/output_0.pb"))));
      std::vector<float> values(found.raw_data().size() / sizeof(float));
      std::memcpy(values.data(), found.raw_data().data(), found.raw_data().size());
      ASSERT_GE(values.size(), 14u);
      std::swap_ranges(values.begin(), values.begin() + 7, values.end() - 7);
      values.back() += moved;
      const auto count = static_cast<int64_t>(values.size());
      answer.append(reinterpret_cast<const char*>(&count), sizeof count);
      answer.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    }
    folder_.write("answer", answer);
    const Outcome outcome = run_shell(folder_, command);
    EXPECT_EQ(outcome.code, moved == 0 ? 0 : 1) << outcome.out << outcome.err;
  }
}

struct PoolingRow {
  int size;
  const char* fields;
  int64_t before, behind;
};

// Equal padding is what every program reads.
TEST_F(ExportVerb, PadsPoolingsEquallyWhereItCan) {
  for (const PoolingRow& row :
       {PoolingRow{8, "kernel_size: 3 stride: 2 pad: 1 round_mode: FLOOR", 1, 1},
        {8, "kernel_size: 3 stride: 2 pad: 1", 1, 2},
        {8, "kernel_size: 3 stride: 2", 0, 1},
        {9, "kernel_size: 3 stride: 2", 0, 0},
        {9, "kernel_size: 3 stride: 2 pad: 1", 1, 1},
        {8, "kernel_size: 3 stride: 2 round_mode: FLOOR", 0, 0},
        {10, "kernel_size: 3 stride: 3 pad: 1", 1, 1}}) {
    folder_.write(
        "pool.prototxt",
        cat("layer { name: \"in\" type: \"Input\" top: \"x\" input_param { shape { dim: 1 ",
            "dim: 2 dim: ", row.size, " dim: ", row.size, " } } }\n",
            "layer { name: \"pool\" type: \"Pooling\" bottom: \"x\" top: \"y\" ",
            "pooling_param { pool: MAX ", row.fields, " } }\n"));
    ASSERT_EQ(
        exported("-model pool.prototxt -weights_mode match -output a.onnx -verify=false").code, 0);
    const onnx::ModelProto made = model("a.onnx");
    ASSERT_EQ(operators(made), Names{"MaxPool"}) << row.fields;
    for (const onnx::AttributeProto& attribute : made.graph().node(0).attribute())
      if (attribute.name() == "pads") {
        EXPECT_EQ(attribute.ints(0), row.before) << row.fields;
        EXPECT_EQ(attribute.ints(2), row.behind) << row.fields;
      }
  }
}

}  // namespace export_verb_test
}  // namespace crema::tests
