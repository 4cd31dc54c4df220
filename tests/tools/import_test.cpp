// `crema import`: the files, and what it says of models that it cannot read.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "base/files.h"
#include "proto/onnx.pb.h"
#include "tools/program.h"

namespace crema::tests {
namespace import_verb_test {

onnx::ValueInfoProto value(const std::string& name, const std::vector<int64_t>& shape) {
  onnx::ValueInfoProto info;
  info.set_name(name);
  auto* const type = info.mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  for (const int64_t extent : shape) {
    auto* const dim = type->mutable_shape()->add_dim();
    if (extent == 0)
      dim->set_dim_param("N");
    else
      dim->set_dim_value(extent);
  }
  return info;
}

onnx::NodeProto* add_node(onnx::ModelProto* model, const std::string& op, const std::string& in,
                          const std::string& out) {
  onnx::NodeProto* const node = model->mutable_graph()->add_node();
  node->set_op_type(op);
  node->set_name(out + "_node");
  node->add_input(in);
  node->add_output(out);
  return node;
}

onnx::TensorProto weights() {
  onnx::TensorProto tensor;
  tensor.set_name("conv1.weight");
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (const int64_t extent : {2, 1, 1, 1}) tensor.add_dims(extent);
  tensor.add_float_data(1);
  tensor.add_float_data(-1);
  return tensor;
}

// data (N, 1, 4, 4) -> Conv -> Relu
onnx::ModelProto small_model() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  *model.mutable_graph()->add_input() = value("data", {0, 1, 4, 4});
  *model.mutable_graph()->add_output() = value("y", {0, 2, 4, 4});
  *model.mutable_graph()->add_initializer() = weights();
  add_node(&model, "Conv", "data", "c")->add_input("conv1.weight");
  add_node(&model, "Relu", "c", "y");
  return model;
}

class ImportVerb : public testing::Test {
 protected:
  Outcome imported(const std::string& bytes, const std::string& flags = "") {
    folder_.write("model.onnx", bytes);
    return run(folder_, cat("crema import model.onnx -output net.prototxt -output_weights "
                            "net.caffemodel -verify=false ",
                            flags));
  }
  Folder folder_;
};

TEST_F(ImportVerb, WritesANetThatAPersonCouldHaveWritten) {
  ASSERT_EQ(imported(small_model().SerializeAsString(), "-batch 3").code, 0);
  EXPECT_EQ(folder_.read("net.prototxt"),
            "# Imported from model.onnx (opset 17) by crema import.\n"
            "layer {\n  name: \"data\"\n  type: \"Input\"\n  top: \"data\"\n"
            "  input_param { shape { dim: 3 dim: 1 dim: 4 dim: 4 } }\n}\n"
            "# Conv \"c_node\"\n"
            "layer {\n  name: \"conv1\"\n  type: \"Convolution\"\n  bottom: \"data\"\n"
            "  top: \"c\"\n"
            "  convolution_param { num_output: 2 bias_term: false kernel_size: 1 }\n}\n"
            "# Relu \"y_node\"\n"
            "layer {\n  name: \"y_node\"\n  type: \"ReLU\"\n  bottom: \"c\"\n  top: \"y\"\n}\n");
  // The files fit each other.
  const Outcome again = run(folder_,
                            "crema export -model net.prototxt -weights net.caffemodel -output "
                            "again.onnx -verify=false");
  EXPECT_EQ(again.code, 0) << again.err;
}

TEST_F(ImportVerb, CopiesResultsThatArePartsOfALayersTops) {
  onnx::ModelProto model = small_model();
  model.mutable_graph()->mutable_node()->RemoveLast();
  onnx::NodeProto* const split = add_node(&model, "Split", "c", "y");
  split->add_output("rest");
  onnx::AttributeProto* const axis = split->add_attribute();
  axis->set_name("axis");
  axis->set_type(onnx::AttributeProto::INT);
  axis->set_i(1);
  *model.mutable_graph()->mutable_output(0) = value("y", {0, 1, 4, 4});
  ASSERT_EQ(imported(model.SerializeAsString()).code, 0);
  const Outcome again = run(folder_,
                            "crema export -model net.prototxt -weights net.caffemodel -output "
                            "again.onnx -verify=false");
  EXPECT_EQ(again.code, 0) << again.err;
}

// Two inputs: a product of matrices, whatever operator says so; what is added may be a blob.
TEST_F(ImportVerb, MultipliesComputedMatrices) {
  for (const char* type : {"MatMul", "Gemm"}) {
    onnx::ModelProto model = small_model();
    onnx::GraphProto* const graph = model.mutable_graph();
    graph->clear_node();
    graph->clear_initializer();
    *graph->mutable_input(0) = value("a", {2, 3});
    *graph->add_input() = value("b", {3, 3});
    *graph->mutable_output(0) = value("y", {2, 3});
    onnx::NodeProto* const product = add_node(&model, type, "a", "y");
    product->add_input("b");
    if (std::string(type) == "Gemm") {
      product->add_input("a");
      onnx::AttributeProto* const turned = product->add_attribute();
      turned->set_name("transB");
      turned->set_type(onnx::AttributeProto::INT);
      turned->set_i(1);
    }
    const Outcome outcome = imported(model.SerializeAsString());
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const std::string net = folder_.read("net.prototxt");
    expect_part(net, "type: \"MatMul\"");
    EXPECT_EQ(net.find("InnerProduct"), std::string::npos) << net;
    EXPECT_EQ(net.find("Eltwise") == std::string::npos, std::string(type) == "MatMul") << net;
  }
}

TEST_F(ImportVerb, WritesTheNetForTraining) {
  onnx::ModelProto model = small_model();
  add_node(&model, "Softmax", "y", "prob");
  *model.mutable_graph()->mutable_output(0) = value("prob", {0, 2, 4, 4});
  const std::vector<std::pair<const char*, const char*>> metadata = {
      {"data.mean", "104,117.5"}, {"data.scale", "0.5"}, {"labels", "cat"}};
  for (const auto& [key, text] : metadata) {
    onnx::StringStringEntryProto* entry = model.add_metadata_props();
    entry->set_key(key);
    entry->set_value(text);
  }
  ASSERT_EQ(imported(model.SerializeAsString(), "-head softmax").code, 0);
  const std::string net = folder_.read("net.prototxt");
  for (const char* part :
       {"$train ?= ", "source: \"$train\" batch_size: $batch", "type: \"SoftmaxWithLoss\"",
        "transform_param { scale: 0.5 mean_value: 104 mean_value: 117.5 }", "bottom: \"y\""})
    expect_part(net, part);
  EXPECT_EQ(net.find("Softmax\"\n"), std::string::npos) << net;  // the loss has it
  EXPECT_EQ(net.find("\"Input\""), std::string::npos) << net;
  folder_.write(
      "python",
      "#!/bin/sh\nhead -c 100000 /dev/zero >\"$2/fake\"\nprintf 'Fake\\tfake\\t1\\t\\n'\n");
  const Outcome compared =
      run_shell(folder_,
                "chmod +x python && \"$TOOLS\"/crema import model.onnx -head softmax -output "
                "net.prototxt -output_weights net.caffemodel -python ./python");
  expect_part(compared.out, "Fake 1: 1 blob, 3 random inputs");
  expect_part(compared.out, "\nprob_node  prob");
  const Outcome wrong = imported(model.SerializeAsString(), "-head hinge");
  EXPECT_EQ(wrong.code, 1);
  expect_part(wrong.err, "-head hinge: expected softmax");
  model.mutable_metadata_props(1)->set_value("half");
  expect_part(imported(model.SerializeAsString(), "-head softmax").err,
              "the model's metadata has data.scale: \"half\"; expected numbers");
}

TEST_F(ImportVerb, ReadsValuesInAnotherFileOfItsFolder) {
  onnx::ModelProto model = small_model();
  onnx::TensorProto* const tensor = model.mutable_graph()->mutable_initializer(0);
  tensor->clear_float_data();
  tensor->set_data_location(onnx::TensorProto::EXTERNAL);
  onnx::StringStringEntryProto* const location = tensor->add_external_data();
  location->set_key("location");
  location->set_value("model.data");
  folder_.write("model.data", std::string(8, '\0'));
  EXPECT_EQ(imported(model.SerializeAsString()).code, 0);
}

struct BadModel {
  const char* name;
  std::function<void(onnx::ModelProto* model)> change;
  const char* says;
};

void put_outside(onnx::ModelProto* model, const char* path) {
  onnx::TensorProto* const tensor = model->mutable_graph()->mutable_initializer(0);
  tensor->clear_float_data();
  tensor->set_data_location(onnx::TensorProto::EXTERNAL);
  onnx::StringStringEntryProto* const location = tensor->add_external_data();
  location->set_key("location");
  location->set_value(path);
}

void make_gru(onnx::ModelProto* model) {
  onnx::GraphProto* const graph = model->mutable_graph();
  *graph->mutable_input(0) = value("data", {3, 1, 6});
  onnx::NodeProto* const node = graph->mutable_node(0);
  node->set_op_type("GRU");
  node->clear_attribute();
  node->clear_input();
  graph->clear_initializer();
  node->add_input("data");
  for (const auto& [name, inputs] : {std::pair("W", 6), std::pair("R", 3)}) {
    node->add_input(name);
    onnx::TensorProto* const tensor = graph->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    for (const int extent : {1, 9, inputs}) tensor->add_dims(extent);
    for (int i = 0; i < 9 * inputs; ++i) tensor->add_float_data(0.1f);
  }
  onnx::AttributeProto* const size = node->add_attribute();
  size->set_name("hidden_size");
  size->set_type(onnx::AttributeProto::INT);
  size->set_i(4);
}

// The graph's second node becomes this operator, with these constants of whole numbers.
void make_operator(onnx::ModelProto* model, const char* type,
                   const std::vector<std::vector<int64_t>>& constants) {
  onnx::GraphProto* const graph = model->mutable_graph();
  onnx::NodeProto* const node = graph->mutable_node(1);
  node->set_op_type(type);
  for (size_t i = 0; i < constants.size(); ++i) {
    const std::string name = cat("constant", i);
    node->add_input(name);
    onnx::TensorProto* const tensor = graph->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::INT64);
    tensor->add_dims(static_cast<int64_t>(constants[i].size()));
    for (const int64_t value : constants[i]) tensor->add_int64_data(value);
  }
}

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

const BadModel kBadModels[] = {
    {"reshape beyond 64 bits",
     [](auto* m) {
       make_operator(m, "Reshape", {{kHuge, kHuge, -1}});
     },
     "node 2 (Reshape \"y_node\") of 1x2x4x4, constant 3: the shape "
     "9223372036854775807x9223372036854775807 has more than 2^48 values"},
    {"slice of an axis twice",
     [](auto* m) {
       make_operator(m, "Slice", {{3, 3}, {4, 4}, {2, 2}});
     },
     "axis 2 is named twice"},
    {"split beyond 64 bits",
     [](auto* m) {
       make_operator(m, "Split", {{kHuge, kHuge, 3}});
       for (const char* more : {"z", "w"}) m->mutable_graph()->mutable_node(1)->add_output(more);
     },
     "the parts do not add up to 1"},
    {"resize beyond floats",
     [](auto* m) {
       make_operator(m, "Resize", {{1, 2, 4, int64_t{1} << 29}});
       onnx::NodeProto* const node = m->mutable_graph()->mutable_node(1);
       const std::string sizes = node->input(1);
       node->set_input(1, "");
       node->add_input("");
       node->add_input(sizes);
     },
     "size 536870912 is larger than 2^24"},
    {"hidden", make_gru, "hidden_size is 4, but W of 1x9x6 is for 3"},
    {"new", [](auto* m) { m->mutable_opset_import(0)->set_version(22); },
     "model.onnx: opset 22 is too new; Crema reads opsets 9 to 21"},
    {"old", [](auto* m) { m->mutable_opset_import(0)->set_version(8); },
     "model.onnx: opset 8 is too old; Crema reads opsets 9 to 21"},
    {"no opset", [](auto* m) { m->clear_opset_import(); },
     "model.onnx: the model names no opset of ONNX's operators"},
    {"no graph", [](auto* m) { m->clear_graph(); },
     "model.onnx: not an ONNX model: it has no graph"},
    {"domain", [](auto* m) { m->mutable_graph()->mutable_node(1)->set_domain("com.microsoft"); },
     "node 2 (Relu \"y_node\"): operators of the domain \"com.microsoft\" are not known"},
    {"function", [](auto* m) { m->add_functions()->set_name("block"); },
     "the model has functions (block); onnx.inliner.inline_local_functions(model)"},
    {"negative", [](auto* m) { m->mutable_graph()->mutable_initializer(0)->set_dims(0, -2); },
     "constant \"conv1.weight\": extent -2 is negative"},
    {"too few values", [](auto* m) { m->mutable_graph()->mutable_initializer(0)->set_dims(0, 3); },
     "constant \"conv1.weight\": 2 values for a shape of 3 (3x1x1x1)"},
    {"huge",
     [](auto* m) {
       for (int i = 0; i < 4; ++i)
         m->mutable_graph()->mutable_initializer(0)->set_dims(i, int64_t{1} << 40);
     },
     "constant \"conv1.weight\": it has more than 1073741824 values"},
    {"order", [](auto* m) { m->mutable_graph()->mutable_node()->SwapElements(0, 1); },
     "node 1 (Relu \"y_node\"): it reads \"c\", which a later node makes: nodes must be in the "
     "order"},
    {"nobody", [](auto* m) { m->mutable_graph()->mutable_node(1)->set_input(0, "x"); },
     "node 2 (Relu \"y_node\"): it reads \"x\", which nothing makes"},
    {"twice", [](auto* m) { m->mutable_graph()->mutable_node(1)->set_output(0, "c"); },
     "node 2 (Relu \"y_node\"): there are two values \"c\""},
    {"output", [](auto* m) { m->mutable_graph()->mutable_output(0)->set_name("z"); },
     "nothing makes the output \"z\""},
    {"unknown", [](auto* m) { m->mutable_graph()->mutable_node(1)->set_op_type("Foo"); },
     "node 2 (Foo \"y_node\") of 1x2x4x4: no layer computes this operator"},
    {"computed weights", [](auto* m) { m->mutable_graph()->mutable_node(0)->set_input(1, "data"); },
     "the weights (\"data\") must be a constant, but is computed"},
    {"open axis",
     [](auto* m) {
       *m->mutable_graph()->mutable_input(0) = value("data", {0, 1, 0, 4});
     },
     "input \"data\": the extent of axis 2 is \"N\"; -assume gives a shape"},
    {"outside", [](auto* m) { put_outside(m, "../secret"); },
     "its values are in \"../secret\", but only files in the folder of the model are read"},
    {"absolute", [](auto* m) { put_outside(m, "/etc/passwd"); },
     "its values are in \"/etc/passwd\", but only files in the folder of the model are read"},
    {"absent", [](auto* m) { put_outside(m, "none.data"); }, "none.data, does not exist"},
    {"channels",
     [](auto* m) {
       *m->mutable_graph()->mutable_input(0) = value("data", {0, 3, 4, 4});
     },
     "node 1 (Conv \"c_node\") of 1x3x4x4, constant 2x1x1x1: weights of 2x1x1x1"},
};

TEST_F(ImportVerb, SaysWhatIsWrongWithAModel) {
  for (const BadModel& row : kBadModels) {
    onnx::ModelProto model = small_model();
    row.change(&model);
    const Outcome outcome = imported(model.SerializeAsString());
    EXPECT_EQ(outcome.code, 1) << row.name;
    ASSERT_EQ(outcome.errors().size(), 1u) << row.name << ": " << outcome.err;
    expect_part(outcome.errors()[0], row.says);
    EXPECT_FALSE(file_exists(folder_.file("net.prototxt"))) << row.name;
    EXPECT_FALSE(file_exists(folder_.file("net.caffemodel"))) << row.name;
  }
}

TEST_F(ImportVerb, SaysWhatIsWrongWithAFile) {
  const std::string whole = small_model().SerializeAsString();
  const struct {
    std::string bytes;
    const char* says;
  } rows[] = {
      {"", "model.onnx: the file is empty"},
      {"name: \"net\"\n", "model.onnx: not an ONNX model"},
      {whole.substr(0, whole.size() - 5), "model.onnx: the file is truncated"},
      {std::string(1000, '\xff'), "model.onnx: not an ONNX model"},
  };
  for (const auto& row : rows) {
    const Outcome outcome = imported(row.bytes);
    EXPECT_EQ(outcome.code, 1);
    ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
    expect_part(outcome.errors()[0], row.says);
  }
}

TEST_F(ImportVerb, SaysWhatIsMissingInTheCommand) {
  folder_.write("model.onnx", small_model().SerializeAsString());
  const struct {
    const char *command, *says;
  } rows[] = {
      {"crema import -output a -output_weights b", "the model is missing"},
      {"crema import model.onnx -output_weights b", "-output NET.prototxt is needed"},
      {"crema import model.onnx -output a", "-output_weights NET.caffemodel is needed"},
      {"crema import model.onnx -output a -output_weights a", "are both a"},
      {"crema import model.onnx -output ./model.onnx -output_weights a", "are one file"},
      {"crema import model.onnx -output a -output_weights b -tolerance -1", "-tolerance -1"},
      {"crema import model.onnx -output a -output_weights b -proof model.onnx", "is no folder"},
      {"crema import model.onnx -output a -output_weights b -batch -1", "-batch -1"},
      {"crema import model.onnx -output a -output_weights b -assume x=1x1x4x4",
       "no input is called \"x\""},
      {"crema import none.onnx -output a -output_weights b", "none.onnx"},
  };
  for (const auto& row : rows) {
    const Outcome outcome = run(folder_, row.command);
    EXPECT_EQ(outcome.code, 1) << row.command;
    ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
    expect_part(outcome.errors()[0], row.says);
  }
}

}  // namespace import_verb_test
}  // namespace crema::tests
