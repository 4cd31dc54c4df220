// Flags from outside of the command: from the config file and CREMA_FLAGS; and -set.
#include <gtest/gtest.h>

#include "tools/program.h"

namespace crema::tests {
namespace shared_flags_test {

constexpr const char* kSmallNet =
    "layer { name: \"in\" type: \"Input\" top: \"x\" input_param { shape { dim: 1 dim: 2 } } }\n"
    "layer { name: \"a\" type: \"ReLU\" bottom: \"x\" top: \"y\" }\n";

// Flags of the config file and of CREMA_FLAGS, and a command.
struct Shared {
  const char* file;
  const char* environment;
  const char* command;
  const char* message;  // part of the log; of its one E line if the command fails
};

void expect_shared(const Shared& row, int code) {
  SCOPED_TRACE(cat(row.file, " | ", row.environment, " | ", row.command));
  const Folder folder;
  folder.write("a net.prototxt", kSmallNet);
  folder.write("flags.txt", "-batch=6\n-solver=x\n");
  folder.write("wrong.txt", "-off fuse\n-bacth=6\n");
  if (row.file[0]) folder.write(".config/crema/flags", row.file);
  folder.write("environment", row.environment);
  const Outcome outcome =
      run_shell(folder, cat("export CREMA_FLAGS=\"$(cat environment)\"; \"$TOOLS\"/", row.command));
  EXPECT_EQ(outcome.code, code) << outcome.err;
  if (code == 0) return expect_part(outcome.err + outcome.out, row.message);
  const std::vector<std::string> errors = outcome.errors();
  ASSERT_EQ(errors.size(), 1u) << outcome.err;
  // The config file is named with its whole path.
  const size_t place = errors[0].find(".config");
  EXPECT_EQ(errors[0].find(row.message), place == std::string::npos ? 0 : place) << errors[0];
}

TEST(SharedFlags, TheLaterOneWins) {
  // The shape of the first layer's top.
  const std::string two = "x 2x2 ", four = "x 4x2 ";
  const char* const show = "crema summary -model 'a net.prototxt'";
  for (const Shared& row : {
           Shared{"-batch 2\n", "", show, two.c_str()},
           Shared{"# mine\n\n  --batch=2  \n", "", show, two.c_str()},
           Shared{"", "-batch 2", show, two.c_str()},
           Shared{"-batch 3\n", "-batch 2", show, two.c_str()},
           Shared{"-batch 4\n", "-batch=3", "crema summary -batch 2 -model 'a net.prototxt'",
                  two.c_str()},
           Shared{"", "-batch=3 --batch 2", show, two.c_str()},
           // A flag file counts at its position.
           Shared{"", "-batch 2 -flagfile flags.txt", show, "x 6x2 "},
           Shared{"", "-flagfile=flags.txt -batch 2", show, two.c_str()},
           Shared{"-flagfile flags.txt\n-batch 4\n", "", show, four.c_str()},
           Shared{"-batch 4\nother_program\n-batch 3\n", "", show, four.c_str()},
           // As a shell splits it.
           Shared{"", "  -model 'a net.prototxt'\t-batch  \"2\"", "crema summary", two.c_str()},
           Shared{"", "-model=\"a net.prototxt\" -batch 2", "crema summary", two.c_str()},
           Shared{"", "-model a\\ net.prototxt -batch \\2", "summary", two.c_str()},
           // Flags that only other verbs take are skipped.
           Shared{"-solver x\n-gray\n", "-snapshot y -batch 2", show, two.c_str()},
           Shared{"", "-gpu 0 -batch 3", "crema layers ReLU", "negative_slope"},
           // Flags set out of sight are logged, and nothing else.
           Shared{"-batch 3\n-solver x\n", "-off fuse", show, ".config/crema/flags: -batch=3\n"},
           Shared{"-solver x\n", "-gray -off 'fuse,format'", show,
                  "Flags from CREMA_FLAGS: -off=fuse,format\n"},
           // Help does not depend on it.
           Shared{"-bacth 1\n", "-nonsense", "crema help summary", "-batch (int32, default 0)"},
           Shared{"-bacth 1\n", "-nonsense", "crema summary -help", "config file, environment, "},
       })
    expect_shared(row, 0);
}

TEST(SharedFlags, MistakesAreNamedWithTheirPlace) {
  for (const Shared& row : {
           Shared{"", "-bacth 3", "crema summary",
                  "CREMA_FLAGS: no verb has a flag -bacth (did you mean \"-batch\"?)"},
           Shared{"# mine\n-bacth=3\n", "", "crema device_query",
                  ".config/crema/flags:2: no verb has a flag -bacth (did you mean"},
           Shared{"-off fuse\n-batch many\n", "", "crema summary",
                  ".config/crema/flags:2: -batch=many: the value must be of type int32"},
           Shared{"", "-batch=many", "crema summary",
                  "CREMA_FLAGS: -batch=many: the value must be of type int32"},
           Shared{"", "-off fuse -gpu", "crema summary", "CREMA_FLAGS: -gpu needs a value"},
           Shared{"-gpu\n", "", "crema summary", ".config/crema/flags:1: -gpu needs a value"},
           Shared{"gpu 0\n", "", "crema summary",
                  ".config/crema/flags:1: \"gpu 0\" is not a flag; write -gpu 0"},
           Shared{"", "-off fuse time", "crema summary",
                  "CREMA_FLAGS: \"time\" is not a flag; expected"},
           Shared{"", "-off 'fuse", "crema summary",
                  "CREMA_FLAGS: the quote before `fuse` is not closed; add '"},
           Shared{"", "-help", "crema summary", "CREMA_FLAGS: -help is for the command line only"},
           Shared{"-version\n", "", "crema summary",
                  ".config/crema/flags:1: -version is for the command line only"},
           Shared{"", "-flagfile missing.txt", "crema summary", "CREMA_FLAGS: missing.txt"},
           Shared{"", "-flagfile wrong.txt", "crema summary",
                  "wrong.txt:2: no verb has a flag -bacth (did you mean"},
           Shared{"", "-set ''", "crema summary",
                  "CREMA_FLAGS: -set is empty; expected PATH=VALUE"},
           // Skipped there, but not here.
           Shared{"", "-solver x", "crema summary -solver x",
                  "`crema summary` has no flag -solver"},
       })
    expect_shared(row, 1);
}

TEST(SharedFlags, TheConfigFileIsInTheHomeFolderByDefault) {
  const Folder folder;
  folder.write("net.prototxt", kSmallNet);
  folder.write("home/.config/crema/flags", "-batch 2\n");
  folder.write("relative/crema/flags", "-batch 3\n");
  for (const char* config :
       {"unset XDG_CONFIG_HOME", "export XDG_CONFIG_HOME=", "export XDG_CONFIG_HOME=relative"}) {
    const Outcome outcome = run_shell(
        folder, cat("export HOME=\"$PWD/home\"; ", config, "; $TOOLS/summary -model net.prototxt"));
    expect_part(outcome.out, "x 2x2 ");
  }
  EXPECT_EQ(run_shell(folder, "unset HOME XDG_CONFIG_HOME; $TOOLS/device_query").code, 0);
}

// Every -set counts. The message of a run that diverges repeats them.
TEST(SharedFlags, SettingsAddUp) {
  const Folder folder;
  folder.write(
      "net.prototxt",
      "layer { name: \"data\" type: \"DummyData\" top: \"x\" top: \"y\" dummy_data_param { shape { "
      "dim: 2 dim: 3 } shape { dim: 2 dim: 1 } data_filler { type: \"constant\" value: 1 } } }\n"
      "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"x\" top: \"z\" inner_product_param { "
      "num_output: 1 } }\n"
      "layer { name: \"loss\" type: \"EuclideanLoss\" bottom: \"z\" bottom: \"y\" top: \"loss\" "
      "}\n");
  folder.write(
      "solver.prototxt",
      "net: \"net.prototxt\" base_lr: 1e10 lr_policy: \"fixed\" max_iter: 9 snapshot: 1\n");
  folder.write(".config/crema/flags", "-set gamma=0.3\n");
  const Outcome outcome =
      run_shell(folder,
                "export CREMA_FLAGS=\"-set 'power=1 '\"; $TOOLS/crema train -set "
                "power=2 -solver solver.prototxt -set=power=3");
  EXPECT_EQ(outcome.code, 1);
  ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
  expect_part(outcome.errors()[0],
              " -set gamma=0.3 -set 'power=1 ' -set power=2 -set power=3 -snapshot solver_iter_");
}

}  // namespace shared_flags_test
}  // namespace crema::tests
