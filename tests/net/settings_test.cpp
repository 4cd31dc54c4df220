// Fields and variables set from outside, as by -set: their effect and messages about mistakes.
#include "net/prototxt/settings.h"

#include <gtest/gtest.h>

#include "net/prototxt/prototxt.h"
#include "support.h"

namespace crema {
namespace settings_test {

const std::string kNet =
    "$width ?= 8 name: \"$width wide\""
    "layer { name: \"data\" type: \"Input\" top: \"x\" include { phase: TRAIN } }"
    "layer { name: \"data\" type: \"Input\" top: \"x\" include { phase: TEST } }"
    "layer { name: \"a/b.c\" type: \"Convolution\" bottom: \"x\" top: \"y\""
    "  convolution_param { num_output: $width kernel_size: 3 weight_filler { type: \"xavier\" } } "
    "}";
const std::string kSolver = "base_lr: 0.01 stepvalue: 3 stepvalue: 5 net: \"net.prototxt\"";

struct Row {
  std::string setting, text, log;
};

// A part of the solver or net after a setting, and the log line.
const Row kSolverRows[] = {
    {"base_lr=0.02", "base_lr: 0.02", "Set base_lr: 0.02 (was 0.01)"},
    {"base_lr = 2e-2", "base_lr: 0.02", ""},
    {"solver.base_lr=0.5", "base_lr: 0.5", ""},
    {"stepvalue[1]=7", "stepvalue: 3\nstepvalue: 7", "Set stepvalue[1]: [3, 7] (was [3, 5])"},
    {"stepvalue[2]=7", "stepvalue: 3\nstepvalue: 5\nstepvalue: 7", ""},
    {"stepvalue=[1, 2]", "stepvalue: 1\nstepvalue: 2", "Set stepvalue: [1, 2] (was [3, 5])"},
    {"stepvalue=1,2", "stepvalue: 1\nstepvalue: 2", ""},
    {"stepvalue=9", "stepvalue: 9", "Set stepvalue: 9 (was [3, 5])"},
    {"type=Adam", "type: \"Adam\"", "Set type: \"Adam\" (was \"SGD\")"},
    {"net=a \"b\".prototxt", "net: \"a \\\"b\\\".prototxt\"", ""},
    {"snapshot_prefix=\"x\"", "snapshot_prefix: \"x\"", ""},
    {"solver_mode=CPU", "solver_mode: CPU", ""},
    {"train_state={level: 2}", "level: 2", ""},
    {"train_state.level=3", "level: 3", "Set train_state.level: 3 (was 0)"},
    {"debug_info=true", "debug_info: true", ""},
    {"base_lr=1/8", "base_lr: 0.125", ""},
    // The file's own setting in another form is removed.
    {"stepvalue_epoch=2", "stepvalue_epoch: 2",
     "Set stepvalue_epoch: 2 (was []) in place of stepvalue"},
    {"train_net=t.prototxt", "train_net: \"t.prototxt\"",
     "Set train_net: \"t.prototxt\" (was \"\") in place of net"},
};
const Row kNetRows[] = {
    {"layer[a/b.c].convolution_param.num_output=64", "num_output: 64",
     "Set layer[a/b.c].convolution_param.num_output: 64 (was 8)"},
    {"layer[2].convolution_param.num_output=64", "num_output: 64", ""},
    {"layer[a/b.c].convolution_param.kernel_size=5", "kernel_size: 5", ""},
    {"layer[a/b.c].convolution_param.weight_filler={type: \"msra\"}", "type: \"msra\"",
     "Set layer[a/b.c].convolution_param.weight_filler: { type: \"msra\" } (was { type: "
     "\"xavier\" })"},
    {"layer[a/b.c].param[0].lr_mult=0", "lr_mult: 0", ""},
    {"layer[data].input_param.shape[0].dim=1,2,3", "dim: 3", ""},
    {"net.debug_info=true", "debug_info: true", ""},
    // One side keeps what both had.
    {"layer[a/b.c].convolution_param.kernel_h=5", "kernel_h: 5\n    kernel_w: 3",
     "Set layer[a/b.c].convolution_param.kernel_h: 5 (was 0) in place of kernel_size"},
    {"width=16", "name: \"16 wide\"", ""},
    {"$width=16", "num_output: 16", ""},
    {"width=very wide", "name: \"very wide wide\"", ""},
};

template <typename Read>
void check(const Row& row, const Read& read) {
  Settings settings({row.setting});
  std::vector<Note> notes;
  const std::string text = read(settings, &notes);
  EXPECT_NE(text.find(row.text), std::string::npos) << row.setting << "\n" << text;
  settings.require_used();
  if (row.log.empty()) return;
  ASSERT_FALSE(notes.empty()) << row.setting;
  EXPECT_EQ(notes.back().line, row.log);
}

TEST(Settings, OfASolver) {
  for (const Row& row : kSolverRows) {
    check(row, [](Settings& settings, std::vector<Note>* notes) {
      SolverParameter solver = parse_solver_text(kSolver, "s").solver;
      *notes = settings.apply(&solver);
      return solver.DebugString();
    });
  }
}

TEST(Settings, OfANet) {
  for (const Row& row : kNetRows) {
    // A width that is a text is no number of outputs.
    std::string text = kNet;
    if (row.setting.find("very") != std::string::npos) text = "$width ?= 8 name: \"$width wide\"";
    check(row, [&](Settings& settings, std::vector<Note>* notes) {
      const NetFile file = parse_net_text(text, "n", &settings);
      *notes = file.upgrade.notes;
      return file.net.DebugString();
    });
  }
}

// Pairs of which a file may have one: the new setting replaces the other.
TEST(Settings, ReplaceWhatSaysTheSame) {
  struct Pair {
    const char *file, *setting, *after;
  };
  for (const Pair& pair :
       {Pair{"max_iter: 9", "max_epoch=1", "max_epoch: 1\n"},
        Pair{"max_epoch: 9", "max_iter=1", "max_iter: 1\n"},
        Pair{"max_iter: 9", "max_epoch=0", "max_iter: 9\nmax_epoch: 0\n"},
        Pair{"test_interval: 9", "test_interval_epoch=0.5", "test_interval_epoch: 0.5\n"},
        Pair{"test_iter: 9 test_iter: 8", "test_epoch=true", "test_epoch: true\n"},
        Pair{"test_epoch: true", "test_iter=3", "test_iter: 3\n"},
        Pair{"snapshot: 9", "snapshot_epoch=2", "snapshot_epoch: 2\n"},
        Pair{"stepsize: 9", "stepsize_epoch=2", "stepsize_epoch: 2\n"},
        Pair{"warmup_iter: 9", "rampup_interval=2", "rampup_interval: 2\n"},
        Pair{"net_param { }", "net=n", "net: \"n\"\n"},
        Pair{"larc: true", "local_lr_auto=true", "local_lr_auto: true\n"}}) {
    Settings settings({pair.setting});
    SolverParameter solver = parse_solver_text(pair.file, "s").solver;
    solver.clear_snapshot_prefix();
    settings.apply(&solver);
    SolverParameter after = parse_solver_text(pair.after, "s").solver;
    after.clear_snapshot_prefix();
    EXPECT_EQ(solver.DebugString(), after.DebugString()) << pair.setting;
  }
  for (const Pair& pair :
       {Pair{"transform_param { mean_file: \"m\" }", "transform_param.mean_value=1,2",
             "transform_param { mean_value: [1, 2] }"},
        Pair{"transform_param { mean_value: 1 }", "transform_param.mean_file=m",
             "transform_param { mean_file: \"m\" }"},
        Pair{"transform_param { crop_size: 4 }", "transform_param.crop_w=2",
             "transform_param { crop_w: 2 crop_h: 4 }"},
        Pair{"transform_param { crop_h: 3 crop_w: 2 }", "transform_param.crop_size=4",
             "transform_param { crop_size: 4 }"},
        Pair{"pooling_param { kernel_size: 3 stride: 2 }", "pooling_param.stride_h=1",
             "pooling_param { kernel_size: 3 stride_h: 1 stride_w: 2 }"},
        Pair{"pooling_param { kernel_h: 3 kernel_w: 2 }", "pooling_param.kernel_size=4",
             "pooling_param { kernel_size: 4 }"},
        Pair{"pooling_param { kernel_size: 3 }", "pooling_param.global_pooling=true",
             "pooling_param { global_pooling: true }"},
        Pair{"loss_param { normalization: FULL }", "loss_param.normalize=false",
             "loss_param { normalize: false }"},
        Pair{"include { phase: TRAIN }", "exclude={phase: TRAIN}", "exclude { phase: TRAIN }"}}) {
    const auto net = [](const std::string& fields) {
      return cat("layer { name: \"a\" type: \"ReLU\" ", fields, " }");
    };
    Settings settings({cat("layer[a].", pair.setting)});
    EXPECT_EQ(parse_net_text(net(pair.file), "n", &settings).net.DebugString(),
              parse_net_text(net(pair.after), "n").net.DebugString())
        << pair.setting;
  }
}

TEST(Settings, MayUseTheOldNameOfTheRule) {
  const auto settings = std::make_shared<Settings>(std::vector<std::string>{"solver_type=ADAM"});
  EXPECT_EQ(parse_solver_text("type: \"SGD\"", "s", settings).solver.type(), "Adam");
}

TEST(Settings, MeanAllLayersOfAName) {
  Settings settings({"layer[data].top=z"});
  const NetFile file = parse_net_text(kNet, "n", &settings);
  EXPECT_EQ(file.net.layer(0).top(0), "z");
  EXPECT_EQ(file.net.layer(1).top(0), "z");
}

struct Mistake {
  const char *setting, *message;
};

const Mistake kMistakes[] = {
    {"base_lr", "-set base_lr: expected PATH=VALUE, such as base_lr=0.02"},
    {"base_lr=", "-set base_lr=: a value is missing behind \"=\""},
    {"base_lr=fast", "-set base_lr=fast: \"base_lr\" expects a number, found fast"},
    {"base_lr=nan", "-set base_lr=nan: base_lr is nan, but must be a number"},
    {"base_lr=1 gamma: 2", "-set base_lr=1 gamma: 2: expected one value for base_lr"},
    {"base_lr=0,01",
     "-set base_lr=0,01: \"base_lr\" expects a number, found 0,01; write "
     "base_lr: 0.01"},
    {"max_iter=10k", "found 10k; write max_iter: 10000"},
    {"max_iter=1.5", "\"max_iter\" expects a whole number, found 1.5"},
    {"base_lr[0]=1", "base_lr is no list, so it takes no index"},
    {"base_lr.x=1", "base_lr is a value, it has no fields"},
    {"stepvalue[5]=1", "stepvalue has 2 elements, counted from 0"},
    {"stepvalue[x]=1", "stepvalue has 2 elements, counted from 0"},
    {"train_state.levl=1", "NetState has no field \"levl\" (did you mean \"level\"?)"},
    {"solver_mode=TPU", "\"solver_mode\" has no value TPU"},
    {"layer[a/b.d].top=y",
     "-set layer[a/b.d].top=y: there is no layer \"a/b.d\" (did you mean "
     "\"a/b.c\"?)"},
    {"layer.top=y", "layer is a list: write layer[NAME]"},
    {"layer[a/b.c].convolution_param.num_outputs=1",
     "ConvolutionParameter has no field \"num_outputs\" (did you mean \"num_output\"?)"},
    {"layer[a/b.c.top=y", "\"[\" without its \"]\""},
    {"base_l=1",
     "-set base_l=1: solver and net have no field \"base_l\" (did you mean "
     "\"base_lr\"?), and their files no variable $base_l ?= VALUE"},
};

TEST(Settings, Mistakes) {
  for (const Mistake& mistake : kMistakes) {
    const std::string message = tests::error_of([&] {
      const auto settings = std::make_shared<Settings>(std::vector<std::string>{mistake.setting});
      parse_solver_text(kSolver, "s", settings);
      parse_net_text(kNet, "n", settings.get());
      settings->require_used();
    });
    EXPECT_NE(message.find(mistake.message), std::string::npos) << mistake.setting << "\n"
                                                                << message;
  }
}

}  // namespace settings_test
}  // namespace crema
