// `crema lr_find`: its output and files, and that its run leaves nothing else.
#include "tools/program.h"

namespace crema::tests {
namespace lr_find_test {

// Learns the class of samples that are all of one.
constexpr const char* kNet =
    "name: \"a < b\"\n"
    "layer { name: \"in\" type: \"DummyData\" top: \"x\" top: \"y\" dummy_data_param { shape { "
    "dim: 8 dim: 5 } shape { dim: 8 } data_filler { type: \"gaussian\" std: 1 } data_filler { "
    "type: \"constant\" value: 2 } } }\n"
    "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"x\" top: \"z\" inner_product_param { "
    "num_output: 3 weight_filler { type: \"xavier\" } } }\n"
    "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"z\" bottom: \"y\" top: \"loss\" "
    "}\n";
constexpr const char* kSolver =
    "net: \"net.prototxt\"\nbase_lr: 0.01\nlr_policy: \"step\"\ngamma: 0.1\nstepsize: 5\n"
    "warmup_iter: 10\nmin_lr: 0.5\nmax_iter: 3\nsnapshot: 2\nsnapshot_prefix: \"s\"\n"
    "random_seed: 5\nplateau_winsize: 3\nkeep_best { output: \"none\" }\n";

void write_files(const Folder& folder) {
  folder.write("net.prototxt", kNet);
  folder.write("s.prototxt", kSolver);
}

TEST(LrFind, ProposesARateAndKeepsNothingElse) {
  const Folder folder;
  write_files(folder);
  const Outcome outcome = run(folder, "crema lr_find -solver s.prototxt -set type=SGD -end_lr 100");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.out, " at a rate of 1e-06, fell fastest at ");
  expect_part(outcome.out, "\nProposed: base_lr ");
  expect_part(outcome.out, "\nUse it: crema train -solver s.prototxt -set type=SGD -set base_lr=");
  const std::string csv = folder.read("lr_find.csv");
  EXPECT_EQ(csv.find("iteration,lr,loss,smoothed\n0,1e-06,1."), 0u) << csv;
  const std::string svg = folder.read("lr_find.svg");
  EXPECT_EQ(svg.find("<svg xmlns="), 0u);
  expect_part(svg, ">Loss while the learning rate rises: a &lt; b</text>");
  expect_part(svg, ">proposed ");
  std::vector<std::string> names = folder.names();
  std::erase_if(names, [](const std::string& name) { return name[0] == '.'; });
  EXPECT_EQ(join(names, " "), "lr_find.csv lr_find.svg net.prototxt s.prototxt");
}

TEST(LrFind, SaysWhereNothingIsLearned) {
  const Folder folder;
  write_files(folder);
  const Outcome outcome =
      run(folder,
          "crema lr_find -solver s.prototxt -iterations 20 -start_lr 1e-9 -end_lr 1e-8 "
          "-output tiny.svg");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.out, "so there is nothing to propose: try more -iterations");
  EXPECT_EQ(outcome.out.find("Use it"), std::string::npos);
}

TEST(LrFind, SaysWhereTheRangeEndsTooSoonOrBeginsTooLate) {
  const Folder folder;
  write_files(folder);
  const Outcome outcome =
      run(folder, "crema lr_find -solver s.prototxt -start_lr 0.01 -end_lr 0.09 -output late.svg");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.out,
              "The loss was still falling at the end: a larger -end_lr may show more.\n");
  expect_part(outcome.out, "It is smaller than every rate tried: use a smaller -start_lr ");
  const std::string svg = folder.read("late.svg");
  EXPECT_EQ(svg.find(">proposed "), std::string::npos);
  for (const char* tick : {">0.01</text>", ">0.02</text>", ">0.05</text>"}) expect_part(svg, tick);
}

struct Refused {
  const char* flags;
  const char* message;
};

TEST(LrFind, RefusesWhatMakesNoCurve) {
  const Folder folder;
  write_files(folder);
  for (const Refused& row : {
           Refused{"", "a solver is needed: -solver SOLVER.prototxt"},
           Refused{"-solver s.prototxt -start_lr 1 -end_lr 0.1", "expected two positive rates"},
           Refused{"-solver s.prototxt -start_lr 0", "expected two positive rates"},
           Refused{"-solver s.prototxt -iterations 5", "-iterations 5: expected at least 20"},
           Refused{"-solver s.prototxt -output plot.png", "-output plot.png: expected NAME.svg"},
           Refused{"-solver s.prototxt -set base_lrr=1", "did you mean \"base_lr\"?"},
       }) {
    const Outcome outcome = run(folder, std::string("crema lr_find ") + row.flags);
    EXPECT_EQ(outcome.code, 1);
    ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
    expect_part(outcome.errors()[0], row.message);
    EXPECT_FALSE(folder.has("lr_find.csv"));
  }
}

}  // namespace lr_find_test
}  // namespace crema::tests
