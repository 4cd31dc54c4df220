// The reader of net and solver files: accepted texts, messages about mistakes, and the position of
// each layer.
#include "net/prototxt/prototxt.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "proto/options.pb.h"

namespace crema {
namespace prototxt_test {

// The message of the Error; "" when the text is fine. Texts of solvers start with "@".
std::string message_of(const std::string& text) {
  try {
    if (starts_with(text, "@")) {
      parse_solver_text(text.substr(1), "f");
    } else {
      parse_net_text(text, "f");
    }
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

struct Mistake {
  const char* text;
  const char* message;
};

const Mistake kMistakes[] = {
    // Unknown fields.
    {"layer { name: \"conv1\"\n  convolution_param { kernal_size: 3 } }",
     "f:2:23: layer \"conv1\": ConvolutionParameter has no field \"kernal_size\" "
     "(did you mean \"kernel_size\"?)"},
    {"layer { name: \"a\" kernel_size: 3 }",
     "f:1:19: layer \"a\": LayerParameter has no field \"kernel_size\"; write it inside "
     "convolution_param or pooling_param { }"},
    {"layer { name: \"a\" lr_mult: 0 }", "write it inside param { }"},
    {"layer { inner_product_param { stepvalue: 3 } }",
     "InnerProductParameter has no field \"stepvalue\"; it belongs to SolverParameter"},
    {"base_lr: 0.1",
     "f:1:1: NetParameter has no field \"base_lr\": it belongs to SolverParameter "
     "(is this a solver file?)"},
    {"@layer { }",
     "f:1:1: SolverParameter has no field \"layer\": it belongs to NetParameter "
     "(is this a net file?)"},
    {"@base_lrr: 1", "(did you mean \"base_lr\"?)"},
    {"layer { Name: \"a\" }", "LayerParameter has no field \"Name\" (did you mean \"name\"?)"},
    // Braces.
    {"layer {\n  name: \"a\"\nlayer { name: \"b\" }",
     "f:3:1: layer \"a\": LayerParameter has no field \"layer\"; it belongs to NetParameter: is a "
     "\"}\" missing before it? (\"layer\" of line 1 is still open)"},
    {"layer {\n  pooling_param { pool: MAX\n  top: \"x\" }",
     "f:3:3: PoolingParameter has no field \"top\"; it belongs to LayerParameter: is a \"}\" "
     "missing before it? (\"pooling_param\" of line 2 is still open)"},
    {"layer {\n  relu_param {\n}", "f:1:1: the block \"layer\" is not closed"},
    {"layer { } }", "f:1:11: this \"}\" closes nothing: one too many"},
    {"layer { inner_product_param { num_output: 3 } }\nweight_filler { } }",
     "f:2:1: NetParameter has no field \"weight_filler\"; it belongs to InnerProductParameter: is "
     "there "
     "one \"}\" too many before it? (\"inner_product_param\" of line 1 is closed already)"},
    {"layer { name: \"a\" } type: \"ReLU\" }",
     "f:1:21: NetParameter has no field \"type\"; it belongs to LayerParameter: is there one \"}\" "
     "too "
     "many before it?"},
    {"layer < >>", "f:1:10: this \">\" closes nothing"},
    {"layer { relu_param < } }", "f:1:22: found \"}\" where \">\" should close the block"},
    // Values of the wrong kind.
    {"@net: models/lenet.prototxt # the net",
     "f:1:6: \"net\" expects a text in quotes: write net: \"models/lenet.prototxt\""},
    {"layer { name: conv1 }", "f:1:15: \"name\" expects a text in quotes: write name: \"conv1\""},
    {"layer { top: [\"a\", 3] }", "f:1:20: \"top\" expects a text in quotes: write top: \"3\""},
    {"@lr_policy: fixed\n",
     "f:1:12: \"lr_policy\" expects a text in quotes: write lr_policy: "
     "\"fixed\""},
    {"@max_iter: \"100\"",
     "f:1:11: \"max_iter\" expects a whole number, found \"100\"; write max_iter: 100"},
    {"@max_iter: 1.5", "f:1:11: \"max_iter\" expects a whole number, found 1.5"},
    {"@max_iter: 99999999999", "f:1:11: \"max_iter\" is at most 2147483647, found 99999999999"},
    {"@base_lr: fast", "f:1:10: \"base_lr\" expects a number, found fast"},
    {"@base_lr: \"fast\"", "f:1:10: \"base_lr\" expects a number, found \"fast\""},
    {"@base_lr: \"0.1\"", "found \"0.1\"; write base_lr: 0.1"},
    {"@base_lr: \"1/10\"", "found \"1/10\"; write base_lr: 1/10"},
    {"@base_lr: \"0,1\"", "found \"0,1\"; write base_lr: 0.1"},
    {"@display: 1\nbase_lr: 0,01",
     "f:2:10: \"base_lr\" expects a number, found 0,01; write "
     "base_lr: 0.01"},
    {"@base_lr: 1,5e-3 momentum: 0.9",
     "f:1:10: \"base_lr\" expects a number, found 1,5e-3; write "
     "base_lr: 1.5e-3"},
    {"@base_lr: -0,01", "found -0,01; write base_lr: -0.01"},
    {"@base_lr: +0.01", "f:1:10: \"base_lr\" expects a number, found +; write base_lr: 0.01"},
    {"@max_iter: 10,000",
     "f:1:11: \"max_iter\" expects a whole number, found 10,000; write "
     "max_iter: 10000"},
    {"@stepvalue: 100,200",
     "f:1:12: \"stepvalue\" expects a whole number, found 100,200; write "
     "stepvalue: [100,200]"},
    {"@max_iter: 10k",
     "f:1:11: \"max_iter\" expects a whole number, found 10k; write max_iter: "
     "10000"},
    {"@max_iter: 1.5M", "found 1.5M; write max_iter: 1500000"},
    {"@max_iter: 10_000", "found 10_000; write max_iter: 10000"},
    {"@max_iter: 1e4",
     "f:1:11: \"max_iter\" expects a whole number, found 1e4; write max_iter: "
     "10000"},
    {"@max_iter: \"10k\"", "found \"10k\"; write max_iter: 10000"},
    {"@base_lr: 1/0", "f:1:11: "},
    {"@test_initialization: yes",
     "f:1:22: \"test_initialization\" expects true or false, found yes; write "
     "test_initialization: true"},
    {"@test_initialization: FALSE", "found FALSE; write test_initialization: false"},
    {"@test_initialization: \"False\"", "found \"False\"; write test_initialization: false"},
    {"@solver_mode: \"gpu\"", "expects CPU or GPU, found \"gpu\"; write solver_mode: GPU"},
    {"@solver_mode: \"TPU\"", "expects CPU or GPU, found \"TPU\""},
    {"layer { convolution_param { pad: -1 } }",
     "f:1:34: \"pad\" expects a whole number, 0 or more, found -1"},
    {"@solver_mode: gpu",
     "f:1:14: \"solver_mode\" has no value gpu (did you mean \"GPU\"?); it takes CPU or GPU"},
    {"@solver_mode: \"GPU\"",
     "\"solver_mode\" expects CPU or GPU, found \"GPU\"; write solver_mode: GPU"},
    {"@solver_mode: 7", "\"solver_mode\" has no value 7; it takes CPU or GPU"},
    {"layer { pooling_param { pool: AVG } }",
     "f:1:31: \"pool\" has no value AVG (did you mean \"AVE\"?); it takes MAX, AVE or STOCHASTIC"},
    {"layers { type: \"ReLU\" }",
     "blocks with type: \"ReLU\" are called \"layer\", not \"layers\""},
    {"layers { type: POOLIN }", "\"type\" has no value POOLIN (did you mean \"POOLING\"?)"},
    {"layer { inner_product_param { weight_filler: \"xavier\" } }",
     "f:1:46: \"weight_filler\" expects a block: weight_filler { ... }, found \"xavier\""},
    {"layer { inner_product_param { num_output { } } }",
     "f:1:42: \"num_output\" is not a block, it expects a whole number"},
    // Signs between field and value.
    {"layer { pooling_param { kernel_size = 3 } }", "f:1:37: found \"=\": write kernel_size: ..."},
    {"layer { pooling_param { kernel_size 3 } }",
     "f:1:37: a \":\" is missing after \"kernel_size\", found 3"},
    {"layer { name: }", "f:1:15: \"name\" expects a text in quotes, found }"},
    {"layer { name:", "\"name\" expects a text in quotes, and the file ends here"},
    {"layer { top: [\"a\" ; \"b\"] }", "the list of \"top\" goes on with \",\" or ends with \"]\""},
    // A field that may occur once.
    {"@display: 0\n\ndisplay: 1", "f:3:1: \"display\" is given twice; the first one is in line 1"},
    {"layer { name: \"p\" pooling_param { } pooling_param { } }",
     "f:1:37: layer \"p\": \"pooling_param\" is given twice"},
    // Required fields.
    {"layer { name: \"c\"\n  clip_param { min: 0 } }",
     "f:2:3: layer \"c\": ClipParameter needs "
     "\"max\""},
    {"layer { clip_param { } }", "f:1:9: ClipParameter needs \"min\" and \"max\""},
    {"@net_param { layer { name: \"q\" clip_param { min: 2 } } }",
     "f:1:31: layer \"q\": ClipParameter needs \"max\""},
    // Single characters.
    {"layer { name: \"a\n}", "f:1:17: the text in quotes does not end on this line"},
    {"@net: \"C:\\Data\\net.prototxt\"", "\"\\\" in a text starts an escape: write paths with"},
    {"// comment\nname: \"n\"",
     "f:1:1: found \"/\" where a field should start: comments start "
     "with \"#\""},
    {"name: \"n\"\n<<<<<<< HEAD\n", "f:2:1: a merge conflict was left in this file"},
    {"name: \"n\"\n=======\n", "f:2:1: a merge conflict was left in this file"},
    {"\xE5\xB1\x82 { }", "f:1:1: a character outside ASCII is allowed only in comments"},
    {"layer { loss_weight: 1x }", "f:1:22: \"loss_weight\" expects a number, found 1x"},
    {"1x", "a number ends here and letters follow"},
    {"28", "f:1:1: found 28 where the name of a field should be"},
    {"\xFF\xFEl\0a", "f: this text is UTF-16; save it as UTF-8"},
    // Tabs and carriage returns count as one column.
    {"layer {\r\n\t\tnname: \"a\"\r\n}", "f:2:3: LayerParameter has no field \"nname\""},
    // Mistakes that only the upgrade sees.
    {"input: \"data\"\ninput_dim: 1", "f:1:1: 1 input(s) need 4 numbers of input_dim, found 1"},
    {"layer { name: \"a\" }\nlayers { name: \"b\" type: RELU }",
     "f:1:1: this file has both \"layer\" blocks and old \"layers\" blocks (the first one: f:2:1)"},
    {"layers { layer { name: \"a\"\n type: \"maxouts\" } }", "f:2:2: Unknown layer name: maxouts"},
    {"@type: \"Adam\"\nsolver_type: SGD",
     "f:2:1: solver_type: SGD and type: \"Adam\" say different things"},
    // Numbers.
    {"layer { }\nlayer { relu_param { negative_slope: nan } }",
     "f:2:22: negative_slope is nan, but must be a number"},
    {"@momentum: 1\nbase_lr: -nan", "f:2:1: base_lr is nan"},
    {"@momentum: 1\n base_lr: -inf", "f:2:2: base_lr is -inf, but must be a finite number"},
    {"@stagelr: 1 stagelr: 1e39", "f:1:12: stagelr is inf, but must be a finite number"},
};

TEST(Prototxt, SaysWhereAMistakeIsAndWhatToDo) {
  for (const Mistake& mistake : kMistakes) {
    const std::string message = message_of(mistake.text);
    EXPECT_NE(message.find(mistake.message), std::string::npos)
        << "text:     " << mistake.text << "\nexpected: " << mistake.message
        << "\nfound:    " << message;
  }
}

// Everything that real files do and protobuf allows.
TEST(Prototxt, AcceptsEveryFormOfTheTextFormat) {
  const char* texts[] = {
      "",
      "# only a comment",
      "\xEF\xBB\xBFname: \"with a byte order mark\"",
      "name: 'single' layer: { name: \"colon before a brace\" }",
      "layer < relu_param: < negative_slope: 0.1 > >",
      "layer { top: [\"a\", 'b'] bottom: [] }",
      "layer [{ name: \"a\" }, { name: \"b\" }]",
      "layer { name: \"a\" \"b\", type: 'x'; }",
      "layer { loss_weight: 1. loss_weight: .5 loss_weight: 1e-4 loss_weight: 2f loss_weight: -inf "
      "}",
      "layer { transform_param { mirror: True crop_size: 0x10 force_color: 0 } }",
      "layer { propagate_down: t propagate_down: f propagate_down: 1 }",
      "layer { eltwise_param { operation: 1 } }",
      "layer { name: \"\\n\\\"\\101\\x41\" }",
      "layer {\r\n\tname: \"a\"\r\n}",
      "layer { name: \"a\" } # no newline at the end, \xB2\xE3 not UTF-8",
      "layer { name: \"\xE5\xB1\x82\" }",
      "layer { transform_param { scale: 1/255 mean_value: [1, 1/2] } } # a // b",
      "layer { denseblock_param { BN_Bias_Filler { value: 1 } } }",
  };
  for (const char* text : texts) EXPECT_EQ(message_of(text), "") << text;
}

TEST(Prototxt, AcceptsWhatForksAddByName) {
  const char* texts[] = {
      "layer { pooling_param { ceil_mode: false } }",
      "layer { loss_param { normalization: PRE_FIXED pre_fixed_normalizer: 256 } }",
      "layer { convolution_param { engine: MKL2017 } include { phase: RUN } }",
      "layer { data_param { backend: IMAGEDB shuffle: true } }",
      "layer { prior_box_param { min_size: 30 max_size: 60 variance: [0.1, 0.1, 0.2, 0.2] } }",
      "layer { bn_param { slope_filler { value: 1 } frozen: true bn_mode: INFERENCE } }",
      "layers { type: CONVOLUTION3D convolution_param { kernel_depth: 3 temporal_pad: 1 } }",
      "default_forward_type: FLOAT16 layer { backward_math: FLOAT }",
      "@eval_type: \"detection\" ap_version: \"11point\" larc: true min_lr: 1e-5",
      "@info { type: \"weight\" interval: 100 } warmup_iter: 5 stagelr: 0.1 stageiter: 10",
  };
  for (const char* text : texts) EXPECT_EQ(message_of(text), "") << text;
}

TEST(Prototxt, KnowsWhereLayersWereWritten) {
  const NetFile file = parse_net_text(
      "name: \"n\"\n"
      "layer {\n  name: \"a\"\n  bottom: \"x\"\n  bottom: \"y\"\n}\n"
      "layer {\n  convolution_param {\n    kernel_size: [3,\n      5] }\n}\n",
      "net.prototxt");
  EXPECT_EQ(file.where(0), "net.prototxt:2:1");
  EXPECT_EQ(file.where(0, "bottom[1]"), "net.prototxt:5:3");
  EXPECT_EQ(file.where(0, "type"), "net.prototxt:2:1");
  EXPECT_EQ(file.where(1, "convolution_param"), "net.prototxt:8:3");
  EXPECT_EQ(file.where(1, "convolution_param.kernel_size[1]"), "net.prototxt:9:5");
  EXPECT_EQ(file.where(1, "convolution_param.pad"), "net.prototxt:8:3");
  EXPECT_EQ(file.where("name"), "net.prototxt:1:1");
  EXPECT_EQ(file.where("state.stage"), "net.prototxt");
}

TEST(Prototxt, KnowsWhereLayersWereWrittenBeforeAnUpgrade) {
  const NetFile file = parse_net_text(
      "input: \"data\" input_dim: [1, 1, 2, 2]\n"
      "layers { layer { name: \"p\" type: \"padding\" pad: 1 } bottom: \"data\" top: \"p\" }\n"
      "layers {\n  layer { name: \"c\" type: \"conv\" num_output: 1 kernelsize: 3 }\n"
      "  bottom: \"p\" top: \"c\" }\n",
      "old.prototxt");
  ASSERT_EQ(file.net.layer_size(), 2);
  EXPECT_EQ(file.where(0), "old.prototxt:1:1");
  EXPECT_EQ(file.where(1), "old.prototxt:3:1");
  EXPECT_EQ(file.where(1, "bottom[0]"), "old.prototxt:5:3");
  EXPECT_EQ(file.where(1, "convolution_param.pad"), "old.prototxt:3:1");
}

TEST(Prototxt, ReadsNetsInsideASolver) {
  const SolverFile solver = parse_solver_text(
      "net_param { layers { name: \"a\" type: RELU } }\n"
      "test_net_param { name: \"t0\" }\ntest_net_param {\n  layer { name: \"b\" }\n}\n",
      "solver.prototxt");
  const NetFile train = inner_net(solver, "net_param");
  EXPECT_EQ(train.net.layer(0).type(), "ReLU");
  EXPECT_EQ(train.where(0), "solver.prototxt:1:13");
  const NetFile test = inner_net(solver, "test_net_param[1]");
  EXPECT_EQ(test.where(0), "solver.prototxt:4:3");
  EXPECT_THROW(inner_net(solver, "test_net_param[2]"), Error);
}

TEST(Prototxt, KnowsWhereSolverFieldsWereWritten) {
  const SolverFile solver = parse_solver_text("base_lr: 1\n  stepvalue: 3 stepvalue: 4", "s");
  EXPECT_EQ(solver.where("base_lr"), "s:1:1");
  EXPECT_EQ(solver.where("stepvalue[1]"), "s:2:16");
  EXPECT_EQ(solver.where("gamma"), "s");
}

TEST(Prototxt, EveryNumberOfASolverIsFinite) {
  const auto* solver = SolverParameter::descriptor();
  int fields = 0;
  for (int i = 0; i < solver->field_count(); ++i) {
    const auto* field = solver->field(i);
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_FLOAT) continue;
    for (const char* number : {"inf", "-inf", "1e39", "nan"}) {
      const std::string text = "net: \"n\"\n" + field->name() + ": " + number;
      const bool told = std::string(number) != "nan" && field->options().HasExtension(no_effect);
      if (told) {
        EXPECT_NO_THROW(parse_solver_text(text, "f")) << text;  // only a warning
      } else {
        EXPECT_NE(message_of("@" + text).find("f:2:1: " + field->name() + " is "),
                  std::string::npos)
            << text;
      }
    }
    ++fields;
  }
  EXPECT_GT(fields, 30);
  // A layer may have a limit that never applies.
  EXPECT_NO_THROW(parse_net_text("layer { clip_param { min: -inf max: inf } }", "f"));
}

TEST(Prototxt, NamesAFileThatIsNotThere) {
  EXPECT_THROW(read_net_file("no/such/net.prototxt"), Error);
  EXPECT_THROW(read_solver_file("no/such/solver.prototxt"), Error);
}

// Whatever a text contains, the reader ends with a message or an Error.
TEST(Prototxt, SurvivesCutAndScrambledTexts) {
  const std::string text =
      "name: \"n\" layer { name: \"a\" type: 'T' top: [\"x\", \"y\"] # c\n"
      "convolution_param < pad: 1 kernel_size: 0x3 weight_filler { type: \"xavier\" } > }";
  for (size_t i = 0; i < text.size(); ++i) {
    message_of(text.substr(0, i));
    for (const char c : {'\0', '"', '{', '}', '[', '\\', ':', '9', 'z', '\xFF'}) {
      std::string changed = text;
      changed[i] = c;
      message_of(changed);
    }
  }
}

}  // namespace prototxt_test
}  // namespace crema
