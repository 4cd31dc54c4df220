// Verbs, flags, help and exit codes.
#include <gtest/gtest.h>

#include <regex>

#include "tools/program.h"

namespace crema::tests {
namespace command_line_test {

struct Refused {
  const char* command;
  const char* message;  // part of the one E line
};

class RefusedTest : public testing::TestWithParam<Refused> {};

TEST_P(RefusedTest, SaysWhyOnOneLineAndExitsWithOne) {
  const Folder folder;
  folder.write("flags.txt", "# a comment\n-iterations=3\n--solvr=x\n");
  folder.write("flags_of_train.txt", "-solver=x\n");
  folder.write("broken.prototxt",
               "name: \"broken\"\nlayer {\n  name: \"a\"\n  tipe: \"ReLU\"\n}\n");
  folder.write(
      "unknown.prototxt",
      "layer { name: \"in\" type: \"Input\" top: \"x\" input_param { shape { dim: 1 dim: 2 } } }\n"
      "layer { name: \"a\" type: \"Relu\" bottom: \"x\" top: \"y\" }\n");
  folder.write("bottom.prototxt",
               "layer { name: \"in\" type: \"Input\" top: \"data\" input_param { shape { dim: 1 "
               "dim: 2 } } }\n"
               "layer { name: \"a\" type: \"ReLU\" bottom: \"dta\" top: \"y\" }\n");
  folder.write("solver.prototxt",
               "net: \"unknown.prototxt\"\nbase_lr: 0.1\nlr_policy: \"fixed\"\nmax_iter: "
               "1\nsolver_mode: CPU\n");
  folder.write("empty.prototxt", "\n");
  folder.write("comment.prototxt", "# nothing\n");
  folder.write("binary.prototxt", std::string("\n\4name\0", 7));
  folder.write("some.solverstate", "\10\2");
  folder.write("typeless.prototxt", "layer { name: \"a\" top: \"x\" }\n");
  folder.write("sourceless.prototxt",
               "layer { name: \"a\" type: \"ReLU\" bottom: \"data\" top: \"y\" }\n");
  folder.write(
      "filler.prototxt",
      "layer { name: \"in\" type: \"Input\" top: \"x\" input_param { shape { dim: 1 dim: 2 } } }\n"
      "layer { name: \"a\" type: \"InnerProduct\" bottom: \"x\" top: \"y\" "
      "inner_product_param { num_output: 3 weight_filler { type: \"xaver\" } } }\n");
  folder.write(
      "plain.prototxt",
      "layer { name: \"in\" type: \"Input\" top: \"x\" input_param { shape { dim: 1 dim: 2 } } }\n"
      "layer { name: \"a\" type: \"ReLU\" bottom: \"x\" top: \"y\" }\n");
  folder.write("lost.prototxt",
               "net: \"nowhere.prototxt\"\nbase_lr: 0.1\nlr_policy: \"fixed\"\nmax_iter: 1\n");
  const Outcome outcome = run(folder, GetParam().command);
  EXPECT_EQ(outcome.code, 1);
  const std::vector<std::string> errors = outcome.errors();
  ASSERT_EQ(errors.size(), 1u) << outcome.err;
  expect_part(errors[0], GetParam().message);
  EXPECT_EQ(outcome.err.find("terminate called"), std::string::npos);
  EXPECT_EQ(outcome.err.find("*** "), std::string::npos) << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(
    CommandLine, RefusedTest,
    testing::Values(
        Refused{"crema trian", "no verb \"trian\" (did you mean \"train\"?)"},
        Refused{"crema -solver x", "a flag without a verb"},
        Refused{"crema test -solver x", "has no flag -solver: it belongs to batch_find, check, "},
        Refused{"crema train -solvr x", "did you mean \"-solver\"?"},
        Refused{"crema time -iteratons 5", "did you mean \"-iterations\"?"},
        Refused{"crema train -iteratons=5", "did you mean \"-iterations\"?"},
        Refused{"crema -iteratons 5 time", "did you mean \"-iterations\"?"},
        Refused{"crema time -gray", "it belongs to convert_annoset, convert_imageset"},
        Refused{"crema time -iterations", "-iterations needs a value"},
        Refused{"crema time -iterations many", "-iterations=many: the value must be of type int32"},
        Refused{"crema export -tolerance NaN", "-tolerance=NaN: expected a number"},
        Refused{"crema time -flagfile flags.txt", "flags.txt:3: `crema time` has no flag -solvr"},
        Refused{"crema test -flagfile flags_of_train.txt",
                "flags_of_train.txt:1: `crema test` has no flag -solver"},
        Refused{"crema time -flagfile missing.txt", "missing.txt"},
        Refused{"crema upgrade_net_proto_text in.prototxt",
                "too few arguments (1); usage: crema upgrade_net_proto_text IN OUT"},
        Refused{"crema layers ReLU Sigmoid", "unexpected argument: \"Sigmoid\""},
        Refused{"crema train my_solver.prototxt",
                "unexpected argument: \"my_solver.prototxt\"; write -solver my_solver.prototxt; "},
        Refused{"crema check net.prototxt", "\"net.prototxt\"; write -model net.prototxt; usage"},
        Refused{"crema test a.caffemodel", "; write -weights a.caffemodel; usage: crema test"},
        Refused{"crema layers Relu", "did you mean \"ReLU\"?"}, Refused{"crema train", "-solver"},
        Refused{"crema train -solver missing.prototxt", "missing.prototxt"},
        Refused{"crema train -solver solver.prototxt", "unknown.prototxt:2:"},
        Refused{"crema time -model plain.prototxt -gpu 0,1",
                "only train and test use several GPUs"},
        Refused{"crema train -solver solver.prototxt -gpu 0,x", "-gpu 0,x: "},
        Refused{"crema time -model plain.prototxt -gpu_memory 80%",
                "-gpu_memory 80%: \"80%\" is not an amount of memory; expected a share of all"},
        Refused{"crema train -solver solver.prototxt -weights a -snapshot b", "-snapshot"},
        Refused{"crema train -solver solver.prototxt -sigint_effect explode", "-sigint_effect"},
        Refused{"crema test -model bottom.prototxt", "-weights"},
        Refused{"crema time", "-model NET.prototxt"},
        Refused{"crema time -model missing.prototxt", "missing.prototxt"},
        Refused{"crema time -model broken.prototxt", "broken.prototxt:4:3"},
        Refused{"crema time -model unknown.prototxt", "unknown.prototxt:2:"},
        Refused{"crema time -model bottom.prototxt", "did you mean \"data\"?"},
        Refused{"crema time -model bottom.prototxt -phase HALF", "expected TRAIN or TEST"},
        Refused{"crema time -model bottom.prototxt -implementation plian",
                "did you mean \"plain\"?"},
        Refused{"crema time -model bottom.prototxt -off fuse,fromat",
                "there is no \"fromat\" (did you mean \"format\"?)"},
        Refused{"crema time -model bottom.prototxt -iterations 0", "expected a positive number"},
        Refused{"crema train -solver empty.prototxt", "empty.prototxt: is empty"},
        Refused{"crema train -solver lost.prototxt",
                "lost.prototxt:1:1: net \"nowhere.prototxt\" does not exist"},
        Refused{"crema train -solver solver.prototxt -model nowhere.prototxt",
                "-model nowhere.prototxt: there is no such file"},
        Refused{"crema time -model empty.prototxt", "empty.prototxt: is empty"},
        Refused{"crema time -model comment.prototxt", "has no layer for phase TRAIN"},
        Refused{"crema time -model binary.prototxt", "binary.prototxt: is a binary file"},
        Refused{"crema time -model typeless.prototxt",
                "typeless.prototxt:1:1: layer \"a\": the type is"},
        Refused{
            "crema time -model sourceless.prototxt",
            "no layer above makes data: is there one for this phase, or does it take a -stage?"},
        Refused{"crema time -model filler.prototxt",
                "filler.prototxt:2:1: layer \"a\": unknown filler type \"xaver\" (did you mean"},
        Refused{"crema test -model plain.prototxt -weights some.solverstate", "is a solver state"},
        Refused{"crema report empty.prototxt", "empty.prototxt: is empty"},
        Refused{"crema report missing.jsonl", "missing.jsonl"}));

TEST(CommandLine, WithoutAVerbListsTheVerbs) {
  const Folder folder;
  const Outcome outcome = run(folder, "crema");
  EXPECT_EQ(outcome.code, 1);
  const std::string verbs =
      "train test time summary device_query convert_mnist_data "
      "convert_cifar_data convert_imageset convert_annoset create_label_map get_image_size "
      "convert_csv "
      "compute_image_mean convert_mnist_siamese_data extract_features "
      "upgrade_net_proto_text upgrade_net_proto_binary "
      "upgrade_solver_proto_text layers deploy report convert_weights";
  for (const std::string& verb : split(verbs, ' ')) {
    expect_part(outcome.out, "\n  " + verb + " ");
    EXPECT_EQ(run(folder, verb + " -help").code, 0);
  }
}

TEST(CommandLine, HelpShowsTheVerbsOwnFlagsWithDefaults) {
  const Folder folder;
  const Outcome outcome = run(folder, "crema test -help");
  EXPECT_EQ(outcome.code, 0);
  expect_part(outcome.out, "-iterations (int32, default 50)");
  expect_part(outcome.out, "-weights (string, default \"\")");
  EXPECT_EQ(outcome.out.find("-solver"), std::string::npos);
  EXPECT_EQ(outcome.out, run(folder, "test --help").out);
  EXPECT_EQ(outcome.out, run(folder, "caffe -help test").out);
  EXPECT_EQ(outcome.out, run(folder, "crema help test").out);
  EXPECT_EQ(run(folder, "crema help").out, run(folder, "crema").out);
  EXPECT_EQ(run(folder, "crema help").code, 0);
}

TEST(CommandLine, Version) {
  const Folder folder;
  const std::string text = run(folder, "crema -version").out;
  EXPECT_TRUE(std::regex_match(
      text, std::regex("crema version \\d+\\.\\d+\\.\\d+\nbuilt with -march=.*CUDA.*\n")))
      << text;
}

// What bash offers for the last word of a line.
struct Completion {
  const char* line;
  const char* offers;
};

class CompletionTest : public testing::TestWithParam<Completion> {};

TEST_P(CompletionTest, OfBash) {
  const Folder folder;
  folder.write("a_solver.prototxt", "base_lr: 1\nnet: \"net.prototxt\"\n");
  folder.write("deeper/other_solver.prototxt", "train_net: \"b.prototxt\"\n");
  folder.write("a_net.caffemodel.h5", "");
  folder.write("net.prototxt", "layer { name: \"ip1\" }\nlayer {\n  name: \"conv1\"\n}\n");
  folder.write("deeper/b.prototxt", "layer { name: \"fc7\" }\n");
  folder.write("script",
               "source '" CREMA_TEST_DATA
               "/../tools/completion/crema.bash'\n"
               "PATH=$TOOLS:$PATH\n"
               "read -ra COMP_WORDS <<< \"$1\"\n"
               "[[ $1 != *' ' ]] || COMP_WORDS+=('')\n"
               "COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_crema\necho \"${COMPREPLY[@]}\"\n");
  const Outcome outcome = run_shell(folder, cat("bash script '", GetParam().line, "'"));
  EXPECT_EQ(outcome.out, cat(GetParam().offers, "\n")) << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(
    CommandLine, CompletionTest,
    testing::Values(
        Completion{"crema tra", "train"}, Completion{"caffe convert_i", "convert_imageset"},
        Completion{"crema help tim", "time"}, Completion{"crema train -solv", "-solver"},
        Completion{"crema train --solv", "--solver"}, Completion{"train -solv", "-solver"},
        Completion{"crema train -solver a_s", "a_solver.prototxt"},
        Completion{"crema train -weights a_", "a_net.caffemodel.h5"},
        Completion{"crema train -solver d", "deeper"},
        Completion{"crema train -precision b", "bf16"}, Completion{"crema -gpu 0 trai", "train"},
        Completion{"crema layers Conv", "ConvLSTM Convolution Convolution3D ConvolutionDepthwise"},
        Completion{"crema layers InnerP", "InnerProduct"}, Completion{"crema db sp", "split"},
        Completion{"crema versi", "version"}, Completion{"crema train -set base_l", "base_lr="},
        Completion{"crema train -set laye", "layer_wise_reduce= layer[ layers."},
        Completion{"crema train -set layer[ip1].inner_product_param.num",
                   "layer[ip1].inner_product_param.num_output="},
        Completion{"crema train -model net.prototxt -set layer[c", "layer[conv1]."},
        Completion{"crema train -solver a_solver.prototxt -set layer[c", "layer[conv1]."},
        Completion{"crema train -solver deeper/other_solver.prototxt -set layer[", "layer[fc7]."},
        Completion{"crema train -solver a_solver.prototxt -model deeper/b.prototxt -set layer[",
                   "layer[fc7]."},
        Completion{"crema test -solv", ""}));

TEST(CommandLine, FlagsInEveryFormReachTheVerb) {
  const Folder folder;
  folder.write(
      "net.prototxt",
      "layer { name: \"in\" type: \"Input\" top: \"x\" input_param { shape { dim: 1 dim: 2 } } }\n"
      "layer { name: \"a\" type: \"ReLU\" bottom: \"x\" top: \"y\" }\n");
  folder.write("flags.txt",
               "# how often\n--iterations=2\n-model net.prototxt\nother_program\n-iterations=7\n");
  for (const char* command :
       {"crema time -model net.prototxt -iterations 2", "time --model=net.prototxt --iterations=2",
        "caffe --iterations 2 time --model net.prototxt", "crema time -flagfile flags.txt",
        "crema time -iterations 9 -flagfile=flags.txt -off fuse"}) {
    const Outcome outcome = run(folder, command);
    EXPECT_EQ(outcome.code, 0) << command << "\n" << outcome.err;
    SCOPED_TRACE(command);
    expect_part(outcome.err, "Testing for 2 iterations.");
  }
}

TEST(CommandLine, LogLinesHaveGlogsPrefixWithoutYearAndColour) {
  const Folder folder;
  const Outcome outcome = run(folder, "crema device_query");
  EXPECT_EQ(outcome.code, 0);
  static const std::regex line(R"(I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ [a-z_]+\.cpp:\d+\] .*)");
  EXPECT_TRUE(std::regex_match(outcome.err.substr(0, outcome.err.find('\n')), line)) << outcome.err;
  EXPECT_EQ(outcome.err.find('\033'), std::string::npos);
}

TEST(CommandLine, StartsWithoutTheImageLibrary) {
  const Outcome outcome = run_shell(Folder(), "ldd $TOOLS/crema");
  expect_part(outcome.out, "libcrema.so");
  EXPECT_EQ(outcome.out.find("opencv"), std::string::npos);
}

TEST(CommandLine, GlogsOwnFlagsWorkEverywhere) {
  const Folder folder;
  EXPECT_EQ(run(folder, "crema device_query -minloglevel 1").err, "");
  EXPECT_EQ(run(folder, "crema device_query -alsologtostderr=false -stderrthreshold 2").err, "");
}

}  // namespace command_line_test
}  // namespace crema::tests
