// Solver fields of forks and of today that are no policy and no rule: frozen layers, the average of
// the weights in tests and snapshots, parts of snapshots; and the errors of fields that disagree.
#include <gtest/gtest.h>

#include "fixtures.h"
#include "solver/fields/freeze.h"

namespace crema::tests {
namespace solver_fields_test {

std::string solver_error(const std::string& text) {
  Context context(Device::cpu);
  return error_of([&] { Solver solver(context, solver_file(text)); });
}

TEST(Freeze, LayersDoNotLearnAndNothingFlowsBelow) {
  Context context(Device::cpu);
  Lines log;
  context.set_log(log);
  Solver solver(context, solver_file("freeze: \"ip1.*\" freeze: \"nothing|ip1\" random_seed: 1"));
  const auto said = [&](const std::string& line) {
    return std::find(log.all.begin(), log.all.end(), line) != log.all.end();
  };
  EXPECT_TRUE(said("ip2 needs backward computation."));
  EXPECT_TRUE(said("ip1 does not need backward computation."));
  EXPECT_TRUE(said("tanh does not need backward computation."));
  const std::vector<float> before = parameters_of(solver);
  solver.step(3);
  const std::vector<float> after = parameters_of(solver);
  for (int i = 0; i < 42; ++i) EXPECT_EQ(after[i], before[i]);  // 7 x 5 weights, 7 biases
  EXPECT_NE(after[42], before[42]);
}

TEST(Freeze, PatternsThatCannotBeMeant) {
  expect_part(solver_error("freeze: \"ip3\""), "freeze \"ip3\" is not the name of a layer");
  expect_part(solver_error("freeze: \"ip3\""), "did you mean \"ip");
  expect_part(solver_error("freeze: \"tanh\""), "not the name of a layer with parameters");
  for (const char* text : {"ip(", "(?=ip1)ip1", "(ip)\\\\1"})
    expect_part(solver_error(cat("freeze: \"", text, "\"")), "is not a regular expression");
  // Where in the file.
  expect_part(solver_error("\n  freeze: \"ip1\" freeze: \"ip(\""),
              "solver.prototxt:19:17: freeze \"ip(\"");
  expect_part(solver_error("\n  freeze: \"ip3\""), "solver.prototxt:19:3: freeze \"ip3\"");
}

// What recurses with the length of a pattern, or of a name, has no stack for these.
TEST(Freeze, LongPatternsAndNamesTakeNoStack) {
  const size_t deep = 50000;
  const std::string nested = std::string(deep, '(') + "ip1" + std::string(deep, ')');
  Context context(Device::cpu);
  {
    Solver solver(context, solver_file(cat("freeze: \"", nested, "\" random_seed: 1")));
    EXPECT_EQ(solver.net().parameters()[0].lr_mult, 0);
    EXPECT_NE(solver.net().parameters()[2].lr_mult, 0);
  }
  const std::string message = solver_error(cat("freeze: \"", nested, "(\""));
  expect_part(message, "is not a regular expression");
  EXPECT_LT(message.size(), 1000U);
  std::string net = kNet;
  const std::string name(1000000, 'n');
  net.replace(net.find("ip1"), 3, name);
  Solver solver(context, solver_file("freeze: \"(n|m)*\" random_seed: 1", net));
  EXPECT_EQ(solver.net().parameters()[0].lr_mult, 0);
}

// The whole name, by the rules that most languages share.
TEST(Freeze, PatternsMatchWholeNames) {
  struct Row {
    const char* pattern;
    bool ip1, ip2;
  };
  for (const Row& row :
       {Row{"ip1", true, false}, Row{"ip.", true, true}, Row{"ip[^2]", true, false},
        Row{"[[:alpha:]]+\\\\d", true, true}, Row{"(?:x|ip)2$", false, true},
        Row{"^ip1|ip2x", true, false}, Row{"\\\\w{3}", true, true}}) {
    SCOPED_TRACE(row.pattern);
    Context context(Device::cpu);
    Solver solver(context, solver_file(cat("freeze: \"", row.pattern, "\" random_seed: 1")));
    EXPECT_EQ(solver.net().parameters()[0].lr_mult == 0, row.ip1);
    EXPECT_EQ(solver.net().parameters()[2].lr_mult == 0, row.ip2);
  }
}

// Keeps what tests find.
class Tests : public EventReader {
 public:
  void read(const Event& event) override {
    if (const auto* test = std::get_if<event::TestResult>(&event))
      values.push_back(test->outputs[0].value);
  }
  std::vector<float> values;
};

TEST(Average, TestsAndSnapshotsUseIt) {
  for (const Device device : {Device::cpu, Device::gpu}) {
    if (device == Device::gpu && gpu_count() == 0) continue;
    const Folder folder;
    const std::string tests = "test_iter: 3 test_interval: 4 random_seed: 4 momentum: 0.5 ";
    const std::string text =
        cat(tests, "ema_decay: 0.7 snapshot_prefix: \"", folder.file("net"), "\" snapshot: 4 ");
    const auto run = [&](const std::string& solver_text, const std::vector<std::string>& weights) {
      Context context(device);
      Tests found;
      SolverOptions options;
      options.readers = {&found};
      options.weights = weights;
      Solver solver(context, solver_file(solver_text), options);
      solver.step(5);
      return std::pair(found.values, parameters_of(solver));
    };
    const auto [plain, plain_weights] = run(text, {});
    const auto [averaged, averaged_weights] = run(text + "test_ema: true", {});
    EXPECT_EQ(plain_weights, averaged_weights);  // training is the same
    ASSERT_EQ(plain.size(), 2u);
    ASSERT_EQ(averaged.size(), 2u);
    EXPECT_EQ(plain[0], averaged[0]);  // the average starts from the weights
    EXPECT_NE(plain[1], averaged[1]);
    // The exported average: after four updates from the start, by hand in the kernels' test.
    Context context(device);
    SolverOptions options;
    options.weights = {folder.file("net_iter_4_ema.caffemodel")};
    Solver solver(context, solver_file(tests), options);
    const std::vector<float> average = parameters_of(solver);
    options.weights = {folder.file("net_iter_4.caffemodel")};
    Solver last(context, solver_file(tests), options);
    EXPECT_NE(average, parameters_of(last));
    EXPECT_EQ(folder.names(),
              (std::vector<std::string>{"net_iter_4.caffemodel", "net_iter_4.solverstate",
                                        "net_iter_4_ema.caffemodel"}));
  }
}

TEST(Snapshots, WithoutTheState) {
  const Folder folder;
  Context context(Device::cpu);
  Solver solver(context,
                solver_file(cat("snapshot: 2 snapshot_include_state: false snapshot_prefix: \"",
                                folder.file("net"), "\"")));
  solver.step(2);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"net_iter_2.caffemodel"}));
}

TEST(Fields, ClippingCanBeSilent) {
  for (const bool told : {true, false}) {
    Context context(Device::cpu);
    Lines log;
    context.set_log(log);
    Solver solver(context, solver_file(cat("clip_gradients: 1e-3 enable_clip_gradient_status: ",
                                           told ? "true" : "false")));
    solver.step(1);
    const bool said = std::any_of(log.all.begin(), log.all.end(), [](const std::string& line) {
      return starts_with(line, "Gradient clipping");
    });
    EXPECT_EQ(said, told);
  }
}

TEST(Fields, AdamWithoutMomentumIsNamedOnce) {
  struct Row {
    const char* text;
    const char* place;  // "": nothing is said
  };
  for (const Row& row :
       {Row{"type: \"Adam\"", "18:1"},
        Row{"random_seed: 1\n  type: \"adam\" amsgrad: true", "19:3"},
        Row{"solver_type: ADAM", "18:1"}, Row{"type: \"Adam\" momentum: 0.9", ""},
        Row{"type: \"Adam\" momentum: 0", ""}, Row{"type: \"Adam\" momentum_policy: \"opt\"", ""},
        Row{"type: \"AdamW\"", ""}, Row{"type: \"SGD\"", ""}}) {
    SCOPED_TRACE(row.text);
    Context context(Device::cpu);
    Lines log;
    context.set_log(log);
    Solver solver(context, solver_file(row.text));
    solver.step(2);
    std::vector<std::string> said;
    for (const std::string& line : log.warnings)
      if (line.find("momentum") != std::string::npos) said.push_back(line);
    ASSERT_EQ(said.size(), row.place[0] ? 1u : 0u);
    if (said.empty()) continue;
    expect_part(said[0], cat("solver.prototxt:", row.place, ": type is \"",
                             solver.parameter().type(), "\""));
    expect_part(said[0], "momentum: 0.9");
  }
}

TEST(Fields, NothingIsLearnedWithoutUpdates) {
  for (const Device device : {Device::cpu, Device::gpu}) {
    if (device == Device::gpu && gpu_count() == 0) continue;
    for (const char* type : {"SGD", "LAMB", "Muon"}) {
      Context context(device);
      Solver solver(context, solver_file(cat("disabled_update: true type: \"", type,
                                             "\" clip_gradients: 0.1 lookahead: true")));
      const std::vector<float> before = parameters_of(solver);
      solver.step(3);
      EXPECT_EQ(parameters_of(solver), before) << type;
      EXPECT_EQ(solver.iteration(), 3);
    }
  }
}

TEST(Fields, ThatDisagree) {
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"type: \"Muom\"", "did you mean \"Muon\"?"},
      {"muon_steps: 3", "muon_steps is set, but type is \"SGD\""},
      {"type: \"Muon\" muon_steps: 0", "muon_steps is 0"},
      {"type: \"Muon\" muon_scale: \"nine\"", "did you mean \"none\"?"},
      {"type: \"Muon\" muon_others: \"SGD\"", "the types are AdamW, Nesterov"},
      {"type: \"LAMB\" larc: true", "larc does not go with type \"LAMB\""},
      {"larc: true local_lr_auto: true", "keep one of them"},
      {"larc: true larc_policy: \"clap\"", "did you mean \"clip\"?"},
      {"regularization_type: \"L3\"", "the types are L2, L1, decoupled, NONE"},
      {"type: \"Lion\" regularization_type: \"L1\"",
       "has a weight decay that is no part of the gradient"},
      {"momentum_policy: \"polly\"", "did you mean \"poly\"?"},
      {"momentum_policy: \"poly\"", "max_iter"},
      {"momentum_policy: \"step\"", "how long does it keep initial_momentum?"},
      {"momentum_policy: \"step\" initial_momentum: 1 initial_momentum_iter: 2",
       "initial_momentum is 1"},
      {"momentum: 0.9 initial_momentum: 0.5", "initial_momentum is set, but momentum_policy is"},
      {"type: \"AdamW\" momentum: 1", "momentum is 1"},
      {"\nmomentum: 90",
       "solver.prototxt:19:1: momentum is 90, it must be at least 0 and less "
       "than 1; 0.9 is usual"},
      {"momentum: 1", ": momentum is 1, it must be at least 0 and less than 1"},
      {"momentum: -0.5",
       ": momentum is -0.5, it must be at least 0 and less than 1; write "
       "momentum: 0.5"},
      {"weight_decay: -0.0005",
       ": weight_decay is -0.0005, it must be at least 0; write "
       "weight_decay: 0.0005"},
      {"\n max_iter: -10000",
       "solver.prototxt:19:2: max_iter is -10000, it must be at least 0; "
       "write max_iter: 10000"},
      {"display: -1", ": display is -1, it must be at least 0; write display: 1"},
      {"test_interval: -5 test_iter: 1", ": test_interval is -5, it must be at least 0"},
      {"average_loss: 0", ": average_loss is 0, it must be at least 1"},
      {"iter_size: 0", ": iter_size is 0, it must be at least 1"},
      {"warmup_iter: -3", ": warmup_iter is -3, it must be at least 0"},
      {"min_lr: -0.1", ": min_lr is -0.1, it must be at least 0; write min_lr: 0.1"},
      {"stepvalue: [5, -6]", ": stepvalue is -6, it must be at least 0"},
      {"delta: -1e-8", ": delta is -1e-08, it must be at least 0"},
      {"ema_decay: 1", "ema_decay is 1"},
      {"test_ema: true", "set ema_decay"},
      {"adabelief: true", "adabelief is true, but type \"SGD\""},
      {"lookahead: true lookahead_steps: 0", "lookahead_steps is 0"},
      {"lookahead: true lookahead_alpha: 1.5", "lookahead_alpha 1.5"},
      {"snapshot_include_weights: false", "snapshot_include_state: false"},
  };
  for (const auto& [text, part] : rows) expect_part(solver_error(text), part);
  // Of the policy; the place is that of the field, not of lr_policy.
  const auto error = [](const std::string& text) {
    Context context(Device::cpu);
    return error_or_none([&] {
      Solver solver(context, parse_solver_text(cat("net_param {", kNet, "}\n", text), "s"));
    });
  };
  expect_part(error("base_lr: -0.01\nlr_policy: \"fixed\""),
              "s:17:1: base_lr is -0.01, it must be at least 0; write base_lr: 0.01");
  expect_part(error("base_lr: 1\nlr_policy: \"step\"\ngamma: -0.1\nstepsize: 5"),
              "s:19:1: gamma is -0.1: lr_policy \"step\" needs at least 0; write gamma: 0.1");
  expect_part(error("base_lr: 1\nlr_policy: \"step\"\ngamma: 0.1\nstepsize: 0"),
              "s:20:1: stepsize is 0: lr_policy \"step\" needs a positive number");
  EXPECT_EQ(error("base_lr: 1\nlr_policy: \"sigmoid\"\ngamma: -0.1\nstepsize: 5"), "");
}

}  // namespace solver_fields_test
}  // namespace crema::tests
