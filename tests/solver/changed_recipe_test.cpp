// A run resumed with another solver than the one that wrote the snapshot: the current file applies,
// and changes are reported.
#include <filesystem>

#include "fixtures.h"
#include "solver/rates/learning_rate.h"
#include "solver/snapshot/state_file.h"

namespace crema::tests {
namespace changed_recipe_test {

constexpr int kIteration = 5;

// A solver with these fields; the rate is 0.05 in iteration 5 unless they say otherwise.
SolverFile solver_with(const std::string& fields, const std::string& net = kNet) {
  const auto otherwise = [&](const char* field, const char* text) {
    return fields.find(field) == std::string::npos ? text : "";
  };
  return parse_solver_text(
      cat("net_param {", net, "}\n", otherwise("base_lr", "base_lr: 0.1 "),
          otherwise("lr_policy", "lr_policy: \"step\" gamma: 0.5 stepsize: 3 "), fields),
      "solver.prototxt");
}

// The state of a run with this solver, in a folder.
std::string snapshot_of(const Folder& folder, const std::string& solver) {
  Context context(Device::cpu);
  Solver trained(context,
                 solver_with(cat(solver, " snapshot_prefix: \"", folder.file("net"), "\"")));
  trained.step(kIteration);
  trained.snapshot();
  return folder.file(cat("net_iter_", kIteration, ".solverstate"));
}

struct Resumed {
  std::vector<std::string> warnings;
  double rate = 0;
  std::string error;
};

Resumed resume(const std::string& state, const std::string& solver, const std::string& net = kNet) {
  Resumed resumed;
  Context context(Device::cpu);
  Lines log;
  context.set_log(log);
  SolverOptions options;
  options.snapshot = state;
  try {
    Solver solver_of(context, solver_with(solver, net), options);
    resumed.rate = solver_of.rate();
  } catch (const Error& error) {
    resumed.error = error.what();
  }
  resumed.warnings = log.warnings;
  return resumed;
}

struct Case {
  const char *name, *before, *after;
  const char* said;  // in the only warning; "": none
  double rate;
};

void PrintTo(const Case& row, std::ostream* out) { *out << row.name; }

class ChangedRecipe : public testing::TestWithParam<Case> {};

TEST_P(ChangedRecipe, IsDoneAndSaid) {
  const Case& row = GetParam();
  const Folder folder;
  const Resumed resumed = resume(snapshot_of(folder, row.before), row.after);
  ASSERT_EQ(resumed.error, "");
  EXPECT_NEAR(resumed.rate, row.rate, 1e-7);
  if (*row.said == 0) {
    EXPECT_EQ(join(resumed.warnings, "\n"), "");
  } else {
    ASSERT_EQ(resumed.warnings.size(), 1u);
    expect_part(resumed.warnings[0], row.said);
    expect_part(resumed.warnings[0], "From iteration 5 on this file holds");
  }
}

#define MULTISTEP "lr_policy: \"multistep\" gamma: 0.1 "

INSTANTIATE_TEST_SUITE_P(
    Rows, ChangedRecipe,
    testing::Values(
        Case{"nothing", MULTISTEP "stepvalue: [4, 8]", MULTISTEP "stepvalue: [4, 8]", "", 0.01},
        Case{"first_step_later", MULTISTEP "stepvalue: [4, 8]", MULTISTEP "stepvalue: [9, 11]",
             "stepvalue was 4, 8 and is 9, 11", 0.1},
        Case{"step_earlier", MULTISTEP "stepvalue: 9", MULTISTEP "stepvalue: [2, 3]",
             "stepvalue was 9 and is 2, 3", 0.001},
        Case{"first_step_now", MULTISTEP "stepvalue: 3", MULTISTEP "stepvalue: 5",
             "stepvalue was 3 and is 5", 0.01},
        Case{"step_added", MULTISTEP "stepvalue: 8", MULTISTEP "stepvalue: [8, 9]",
             "stepvalue was 8 and is 8, 9", 0.1},
        Case{"gamma", MULTISTEP "stepvalue: 4", "lr_policy: \"multistep\" gamma: 0.2 stepvalue: 4",
             "gamma was 0.1 and is 0.2", 0.02},
        Case{"policy", MULTISTEP "stepvalue: 4", "lr_policy: \"fixed\"",
             "lr_policy was \"multistep\" and is \"fixed\"", 0.1},
        Case{"to_stepearly", MULTISTEP "stepvalue: 4",
             "lr_policy: \"stepearly\" gamma: 0.1 stepearly: 2 test_interval: 9 test_iter: 1",
             "lr_policy was", 0.1},
        Case{"to_plateau", MULTISTEP "stepvalue: 4",
             "lr_policy: \"plateau\" gamma: 0.1 plateau_winsize: [9, 9]", "lr_policy was", 0.1},
        Case{"base_lr", "", "base_lr: 0.4", "base_lr was 0.1 and is 0.4", 0.2},
        Case{"momentum", "momentum: 0.9", "momentum: 0.5", "momentum was 0.9 and is 0.5", 0.05},
        Case{"weight_decay", "", "weight_decay: 0.01", "weight_decay was 0 and is 0.01", 0.05},
        Case{"iter_size", "", "iter_size: 2", "iter_size was 1 and is 2", 0.05},
        Case{"same_as_default", "", "momentum: 0 iter_size: 1", "", 0.05},
        Case{"warmup", "", "warmup_iter: 10", "warmup_iter was 0 and is 10", 0.05},
        Case{"nesterov", "momentum: 0.9", "momentum: 0.9 type: \"Nesterov\"",
             "type was \"SGD\" and is \"Nesterov\"", 0.05},
        Case{"longer", "max_iter: 6", "max_iter: 9", "", 0.05},
        Case{"longer_poly", "lr_policy: \"poly\" power: 1 max_iter: 10",
             "lr_policy: \"poly\" power: 1 max_iter: 20", "max_iter was 10 and is 20", 0.075},
        Case{"only_files", "display: 2", "display: 5 snapshot: 7 test_interval: 3", "", 0.05}),
    [](const auto& row) { return row.param.name; });

TEST(Resumed, WithAnotherBatch) {
  const Folder folder;
  std::string net = kNet;
  const std::string state = snapshot_of(folder, "");
  net.replace(net.find("dim: 6"), 6, "dim: 8");
  net.replace(net.find("dim: 6"), 6, "dim: 8");
  const Resumed resumed = resume(state, "", net);
  ASSERT_EQ(resumed.warnings.size(), 1u) << resumed.error;
  expect_part(resumed.warnings[0], "the batch was 6 and is 8");
}

TEST(Resumed, BeyondItsEnd) {
  const Folder folder;
  const Resumed resumed = resume(snapshot_of(folder, ""), "max_iter: 3");
  ASSERT_EQ(resumed.warnings.size(), 1u);
  expect_part(resumed.warnings[0],
              "beyond max_iter 3 of solver.prototxt: nothing is left to train");
}

TEST(Resumed, WithAHistoryOfAnotherKind) {
  const Folder folder;
  const std::string state = snapshot_of(folder, "momentum: 0.9");
  for (const char* type : {"AdaGrad", "RMSProp", "Lion"}) {
    expect_part(
        resume(state, cat("type: \"", type, "\"")).error,
        cat("its history was kept by type \"SGD\" and means something else to type \"", type));
  }
}

// As Caffe writes it: neither a recipe nor a data position.
SolverState of_caffe(const std::string& path) {
  const SolverState ours = read_solver_state(path);
  SolverState state;
  state.set_iter(ours.iter());
  state.set_learned_net(ours.learned_net());
  *state.mutable_history() = ours.history();
  state.set_current_step(ours.current_step());
  return state;
}

TEST(Resumed, FromAStateOfCaffe) {
  const Folder folder;
  const std::string path = snapshot_of(folder, MULTISTEP "stepvalue: [4, 8]");
  folder.write("net_iter_5.solverstate", of_caffe(path).SerializeAsString());
  const Resumed same = resume(path, MULTISTEP "stepvalue: [4, 8]");
  EXPECT_EQ(same.error, "");
  EXPECT_TRUE(same.warnings.empty());
  const Resumed other = resume(path, MULTISTEP "stepvalue: [9, 11]");
  ASSERT_EQ(other.warnings.size(), 1u);
  expect_part(other.warnings[0], "the rate had done 1 steps, but 0 of the stepvalues are before");
  EXPECT_NEAR(other.rate, 0.1, 1e-7);
}

TEST(Resumed, WithoutWeights) {
  const Folder folder;
  const std::string path = snapshot_of(folder, "");
  const std::string weights = folder.file("net_iter_5.caffemodel");
  SolverState state = of_caffe(path);
  state.clear_learned_net();
  folder.write("net_iter_5.solverstate", state.SerializeAsString());
  EXPECT_EQ(resume(path, "").error, "");  // those beside it, of its name
  std::filesystem::rename(weights, folder.file("other.caffemodel"));
  expect_part(resume(path, "").error, "its weights are missing: it names none (learned_net), and ");
  state.set_learned_net("gone.caffemodel");
  folder.write("net_iter_5.solverstate", state.SerializeAsString());
  expect_part(resume(path, "").error, "its weights are missing: neither gone.caffemodel nor ");
  // A snapshot that was renamed keeps its weights.
  std::filesystem::rename(path, folder.file("other.solverstate"));
  EXPECT_EQ(resume(folder.file("other.solverstate"), "").error, "");
}

TEST(Resumed, WithWeightsOfAnotherNet) {
  const Folder folder;
  const std::string path = snapshot_of(folder, "");
  folder.write("net_iter_5.solverstate", of_caffe(path).SerializeAsString());
  std::string net = kNet;
  for (size_t at; (at = net.find("\"ip2\"")) != std::string::npos;) net.replace(at, 5, "\"fc\"");
  expect_part(resume(path, "", net).error, "have no layer \"fc\", which would go on from random");
}

// Steps before an iteration are those of a run that did them one by one.
TEST(LearningRate, StepsBeforeAnIteration) {
  for (const char* fields :
       {"stepvalue: [2, 4, 9]", "stepvalue: [5, 2, 7]", "stepvalue: [3, 3, 3]",
        "stepvalue: [0, 1] warmup_iter: 3", "stepvalue: 2 rampup_interval: 6"}) {
    const SolverParameter solver = solver_with(cat(MULTISTEP, fields)).solver;
    RateState state = first_rate_state(solver);
    for (int iteration = 0; iteration < 12; ++iteration) {
      EXPECT_EQ(multistep_before(solver, iteration), state.current_step) << fields << iteration;
      learning_rate(solver, iteration, &state);
    }
  }
}

}  // namespace changed_recipe_test
}  // namespace crema::tests
