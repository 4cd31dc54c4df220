// The verbs that look at files: upgrade_*, layers, summary, report.
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "tools/program.h"

namespace crema::tests {
namespace verbs_test {

TEST(UpgradeNetProtoText, WritesTodaysFormAndSaysSo) {
  const Folder folder;
  folder.write("old.prototxt",
               "layers { name: \"relu\" type: RELU bottom: \"x\" top: \"y\" }\ninput: \"x\" "
               "input_dim: 1 input_dim: 2 "
               "input_dim: 3 input_dim: 4\n");
  const Outcome outcome = run(folder, "upgrade_net_proto_text old.prototxt new.prototxt");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string text = folder.read("new.prototxt");
  expect_part(text, "type: \"ReLU\"");
  expect_part(text, "type: \"Input\"");
  EXPECT_EQ(text.find("layers"), std::string::npos);
  expect_part(outcome.err,
              "Attempting to upgrade input file specified using deprecated "
              "V1LayerParameter: old.prototxt");
  EXPECT_EQ(outcome.messages().back(), "Wrote upgraded NetParameter text proto to new.prototxt");
  EXPECT_TRUE(outcome.errors().empty());

  const Outcome again = run(folder, "upgrade_net_proto_text new.prototxt newer.prototxt");
  EXPECT_EQ(again.code, 0);
  ASSERT_EQ(again.errors().size(), 1u);
  EXPECT_EQ(again.errors()[0], "File already in latest proto format: new.prototxt");
  EXPECT_EQ(folder.read("newer.prototxt"), text);
}

TEST(UpgradeNetProtoBinary, WritesTodaysForm) {
  const Folder folder;
  folder.copy_golden("trainlog/init.caffemodel", "init.caffemodel");
  const Outcome outcome = run(folder, "upgrade_net_proto_binary init.caffemodel out.caffemodel");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(folder.read("out.caffemodel"), folder.read("init.caffemodel"));
  EXPECT_EQ(outcome.messages().back(),
            "Wrote upgraded NetParameter binary proto to out.caffemodel");

  folder.write("garbage.caffemodel", "this is no net");
  const Outcome refused =
      run(folder, "upgrade_net_proto_binary garbage.caffemodel out2.caffemodel");
  EXPECT_EQ(refused.code, 1);
  expect_part(refused.err, "garbage.caffemodel");
  EXPECT_FALSE(folder.has("out2.caffemodel"));
}

TEST(UpgradeSolverProtoText, TurnsTheEnumIntoAName) {
  const Folder folder;
  folder.write("old.prototxt", "net: \"n\"\nbase_lr: 0.1\nsolver_type: ADAM\n");
  const Outcome outcome = run(folder, "upgrade_solver_proto_text old.prototxt new.prototxt");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string text = folder.read("new.prototxt");
  expect_part(text, "type: \"Adam\"");
  EXPECT_EQ(text.find("solver_type"), std::string::npos);
  // Lines that training adds at its start are not upgrades of the file.
  EXPECT_EQ(text.find("snapshot_prefix"), std::string::npos);
  EXPECT_EQ(outcome.messages().back(), "Wrote upgraded SolverParameter text proto to new.prototxt");
}

TEST(Layers, ListsTypesWithASentenceEach) {
  const Folder folder;
  const Outcome outcome = run(folder, "crema layers");
  EXPECT_EQ(outcome.code, 0);
  std::istringstream lines(outcome.out);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_GT(line.size(), 20u) << "no sentence: " << line;
  }
  EXPECT_GE(count, 35);
}

TEST(Layers, DocumentsATypeWithItsFields) {
  const Folder folder;
  const Outcome outcome = run(folder, "layers Pooling");
  EXPECT_EQ(outcome.code, 0);
  expect_part(outcome.out, "pooling_param { PoolingParameter }");
  expect_part(outcome.out, "  pool (MAX | AVE | STOCHASTIC, default MAX)\n      ");
  expect_part(outcome.out, "  kernel_size (uint32)\n      ");
  expect_part(run(folder, "layers Deconvolution").out,
              "convolution_param { ConvolutionParameter }");
  expect_part(run(folder, "layers SoftmaxWithLoss").out, "loss_param { LossParameter }");
  EXPECT_EQ(run(folder, "layers Convolution").out.find("relu_param {"), std::string::npos);
}

TEST(Summary, CountsParametersOnceAndSumsUp) {
  const Folder folder;
  folder.write("net.prototxt",
               "name: \"twins\"\ninput: \"x\" input_shape { dim: 2 dim: 10 }\n"
               "layer { name: \"a\" type: \"InnerProduct\" bottom: \"x\" top: \"a\" param { name: "
               "\"w\" } param { name: \"b\" lr_mult: 0 }"
               " inner_product_param { num_output: 10 weight_filler { type: \"xavier\" } } }\n"
               "layer { name: \"b\" type: \"InnerProduct\" bottom: \"a\" top: \"b\" param { name: "
               "\"w\" } param { name: \"b\" lr_mult: 0 }"
               " inner_product_param { num_output: 10 } }\n");
  const Outcome outcome = run(folder, "summary -model net.prototxt -phase TEST");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.out, "twins, phase TEST");
  expect_part(outcome.out, "a 2x10          110");
  expect_part(outcome.out, "shares w, b");
  expect_part(outcome.out, "110 parameters, 100 of them learned");
}

TEST(Summary, MemoryByLayerAndByKind) {
  const Folder folder;
  folder.write("net.prototxt",
               "name: \"one\"\ninput: \"x\" input_shape { dim: 64 dim: 1024 }\n"
               "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"x\" top: \"y\" "
               "inner_product_param { num_output: 256 bias_term: false } }\n");
  const Outcome outcome = run(folder, "summary -model net.prototxt -phase TEST -memory");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.out, "one, phase TEST, on the CPU in fp32");
  const auto squeezed = [](const std::string& text) {
    return std::regex_replace(text, std::regex(" +"), " ");
  };
  expect_part(squeezed(outcome.out), "\nip InnerProduct 64.0 KiB");
  expect_part(squeezed(outcome.out), "\nblobs that stay between passes 256.0 KiB\n");
  expect_part(squeezed(outcome.out), "\nweights 1.0 MiB\n");
  expect_part(squeezed(outcome.out), "is in use in the forward pass of ip:\n\ny 64.0 KiB\n");
  EXPECT_EQ(outcome.out.find("A solver keeps"), std::string::npos);
  const Outcome train = run(folder, "summary -model net.prototxt -memory");
  expect_part(squeezed(train.out), "\ngradients of weights 1.0 MiB\n");
  expect_part(train.out, "A solver keeps 1.0 MiB more");
}

TEST(Report, ShowsCurvesOfTheRunThatCounts) {
  const Folder folder;
  folder.write(
      "metrics.jsonl",
      "{\"iteration\":0,\"kind\":\"start\",\"time\":0}\n"
      "{\"iteration\":0,\"kind\":\"train\",\"time\":1,\"values\":{\"loss\":2.3,\"lr\":0.01}}\n"
      "{\"iteration\":50,\"kind\":\"train\",\"time\":2,\"values\":{\"loss\":777,\"lr\":0.01}}\n"
      "{\"iteration\":40,\"kind\":\"start\",\"time\":0}\n"
      "{\"iteration\":50,\"kind\":\"train\",\"time\":2,\"values\":{\"loss\":1.5,\"lr\":0.005}}\n"
      "{\"iteration\":55,\"kind\":\"train\",\"time\":2,\"values\":{\"loss\":888,\"lr\":0.005}}\n"
      "{\"iteration\":52,\"kind\":\"rollback\",\"time\":2,\"values\":{\"from\":55}}\n"
      "{\"iteration\":60,\"kind\":\"test\",\"net\":0,\"time\":3,\"values\":{\"accuracy\":0.91,"
      "\"loss\":1.25}}\n"
      "{\"iteration\":60,\"kind\":\"train\",\"time\":3,\"values\":{\"loss\":null}}\n"
      "{\"iteration\":70,\"kind\":\"tra");  // cut short by a kill
  const Outcome outcome = run(folder, "crema report metrics.jsonl -output page.html");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string page = folder.read("page.html");
  expect_part(page, "<!doctype html>");
  expect_part(page, "91.00%");
  expect_part(page, "data-name=\"training: loss\" data-points=\"0,2.3 50,1.5 60,-\"");
  expect_part(page, "Learning rate");
  EXPECT_EQ(page.find("777"), std::string::npos)
      << "the resumed run replaces what came after its start";
  EXPECT_EQ(page.find("888"), std::string::npos) << "a rollback takes back what came after it";
  EXPECT_EQ(page.find("://"), std::string::npos) << "the page must not need a network";

  folder.write("broken.jsonl", "{\"iteration\":0,\"kind\":\"start\"}\nnot json\n{}\n");
  expect_part(run(folder, "crema report broken.jsonl").errors().at(0), "broken.jsonl:2: ");
}

}  // namespace verbs_test
}  // namespace crema::tests
