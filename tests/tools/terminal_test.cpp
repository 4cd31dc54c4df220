// Output on a terminal: colours, messages without Caffe's prefix, one status line; and what stays
// in pipes and log files.
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <regex>

#include "tools/program.h"

namespace crema::tests {
namespace terminal_test {

constexpr const char* kNet =
    "layer { name: \"data\" type: \"DummyData\" top: \"x\" top: \"label\" dummy_data_param { shape "
    "{ "
    "dim: 2 dim: 3 } shape { dim: 2 } } }\n"
    "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"x\" top: \"ip\" inner_product_param { "
    "num_output: 2 } }\n"
    "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\" top: "
    "\"loss\" "
    "}\n";

void prepare(const Folder& folder) {
  folder.write("net.prototxt", kNet);
  folder.write("solver.prototxt",
               "net: \"net.prototxt\"\nbase_lr: 0.1\nlr_policy: \"fixed\"\nmax_iter: 3\n"
               "solver_mode: CPU\nsnapshot_prefix: \"net\"\nsnapshot_after_train: false\n");
}

// All that a terminal of this width shows of a command.
std::string on_terminal(const Folder& folder, const std::string& command,
                        unsigned short columns = 80, const char* kind = "xterm") {
  winsize size{};
  size.ws_col = columns;
  size.ws_row = 24;
  int master = -1;
  const std::string line = own_environment(folder) +
                           "unset NO_COLOR CLICOLOR CLICOLOR_FORCE; cd '" + folder.path() +
                           "'; export TERM=" + kind + " GLOG_log_dir='" + folder.path() +
                           "' PATH='" CREMA_TOOLS "':\"$PATH\"; " + command;
  const pid_t child = forkpty(&master, nullptr, nullptr, &size);
  require(child >= 0, "cannot make a terminal");
  if (child == 0) {
    execl("/bin/bash", "bash", "-c", line.c_str(), nullptr);
    _exit(127);
  }
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(master, buffer, sizeof buffer)) > 0;) text.append(buffer, got);
  close(master);
  waitpid(child, nullptr, 0);
  return text;
}

struct Shown {
  const char* command;
  const char* shows;
  bool colour = true;
};

// The command that fails because of layer "ip", with the environment of a terminal.
std::string of_wrong_layer(const std::string& environment) {
  return "unset FORCE_HYPERLINK VTE_VERSION KONSOLE_VERSION WT_SESSION KITTY_WINDOW_ID DOMTERM "
         "TERM_PROGRAM; export NO_COLOR=1 CREMA_MANUAL=manual; " +
         environment + " crema summary -model net.prototxt -set layer[ip].type=Flip";
}

TEST(Terminal, LinksLayersToTheManual) {
  const Folder folder;
  prepare(folder);
  folder.write("manual/layers/Flip.html", "");
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const std::string begin = "layer \"\033]8;;", end = "\033\\ip\033]8;;\033\\\"";
  const std::string link =
      begin + "file://" + host + folder.path() + "/manual/layers/Flip.html" + end;
  for (const char* terminal :
       {"VTE_VERSION=7200", "FORCE_HYPERLINK=1", "WT_SESSION=1", "TERM_PROGRAM=vscode", "TERM=foot",
        "TERM=xterm-kitty", "TERM=tmux-256color FORCE_HYPERLINK=1"})
    expect_part(on_terminal(folder, of_wrong_layer(terminal)), link);
  expect_part(on_terminal(folder, of_wrong_layer("TERM=foot CREMA_MANUAL=https://crema.example/")),
              begin + "https://crema.example/layers/Flip.html" + end);
  for (const char* terminal : {"", "VTE_VERSION=4500", "VTE_VERSION=7200 FORCE_HYPERLINK=0",
                               "VTE_VERSION=7200 TERM=screen", "VTE_VERSION=7200 TERM=dumb",
                               "VTE_VERSION=7200 CREMA_MANUAL=none"}) {
    const std::string shown = on_terminal(folder, of_wrong_layer(terminal));
    expect_part(shown, "layer \"ip\": ");
    EXPECT_EQ(shown.find("\033]8"), std::string::npos) << terminal;
  }
  // Never in pipes and log files.
  const std::string piped =
      on_terminal(folder, of_wrong_layer("FORCE_HYPERLINK=1") + " 2>&1 | cat; cat *.ERROR");
  const size_t first = piped.find("layer \"ip\": ");
  EXPECT_NE(piped.find("layer \"ip\": ", first + 1), std::string::npos) << piped;
  EXPECT_EQ(piped.find("\033]8"), std::string::npos) << piped;
}

TEST(Terminal, ShowsErrorsAndWarningsWithoutPrefix) {
  const Folder folder;
  prepare(folder);
  const Shown rows[] = {
      {"crema trian", "\033[1;31merror:\033[0m no verb \"trian\""},
      {"crema time -model none.prototxt", "\033[1;31merror:\033[0m none.prototxt"},
      {"NO_COLOR=1 crema trian", "error: no verb \"trian\"", false},
      {"NO_COLOR=1 CLICOLOR_FORCE=1 crema trian", "error: no verb \"trian\"", false},
      {"CLICOLOR=0 crema trian", "error: no verb \"trian\"", false},
      {"TERM=dumb crema trian", "error: no verb \"trian\"", false},
      {"TERM=dumb CLICOLOR_FORCE=1 crema trian", "\033[1;31merror:\033[0m no verb \"trian\""},
      {"crema time -iterations 1 -gpu_memory 0.5 -model net.prototxt",
       "\033[1;33mwarning:\033[0m -gpu_memory 0.5 has no effect"},
      {"crema check -solver solver.prototxt -set type=Adam",
       "\033[1;33mwarning\033[0m: type is \"Adam\""},
  };
  for (const Shown& row : rows) {
    const std::string text = on_terminal(folder, row.command);
    expect_part(text, row.shows);
    EXPECT_EQ(text.find('\033') != std::string::npos, row.colour) << text;
    EXPECT_FALSE(std::regex_search(text, std::regex("[EW]\\d{4} \\d\\d:"))) << text;
  }
}

TEST(Terminal, APipeKeepsCaffesForm) {
  const Folder folder;
  const std::string plain = run(folder, "crema trian").err;
  EXPECT_EQ(plain.find('\033'), std::string::npos);
  EXPECT_EQ(plain[0], 'E');
  const std::string forced = run_shell(folder, "CLICOLOR_FORCE=1 \"$TOOLS\"/crema trian").err;
  EXPECT_EQ(forced[0], 'E');
  expect_part(forced, "] \033[1;31mno verb \"trian\"");
}

TEST(Terminal, KeepsAColouredStatusLineOfItsWidth) {
  const Folder folder;
  prepare(folder);
  const std::string text =
      on_terminal(folder, "crema train -solver solver.prototxt -set max_iter=2000", 50);
  const std::regex status("\r\033\\[36m([^\033\r\n]*)\033\\[0m");
  int count = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), status), end; at != end; ++at, ++count)
    EXPECT_LT((*at)[1].length(), 50);
  EXPECT_GT(count, 0) << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("I\\d{4} \\d\\d:\\d\\d:\\d\\d"))) << text;
  EXPECT_EQ(on_terminal(folder, "crema train -quiet -solver solver.prototxt"), "");
  const std::string dumb = on_terminal(folder, "crema train -solver solver.prototxt", 80, "dumb");
  EXPECT_EQ(dumb.find('\033'), std::string::npos);
}

TEST(Terminal, QuietLeavesResultsWarningsAndTheLogFile) {
  const Folder folder;
  prepare(folder);
  ASSERT_EQ(run(folder, "crema train -solver solver.prototxt -set snapshot_after_train=true").code,
            0);
  const Outcome outcome = run(
      folder, "crema test -quiet -model net.prototxt -weights net_iter_3.caffemodel -iterations 2");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_TRUE(
      std::regex_search(outcome.out, std::regex("^Loss: [0-9.]+\nloss = [0-9.]+ .*loss\\)\n")))
      << outcome.out;
  expect_part(folder.read(".log/crema.INFO"), "] Creating Layer ip\n");
  const Outcome refused = run(folder, "crema test -quiet -model net.prototxt -weights none");
  EXPECT_EQ(refused.errors().size(), 1u) << refused.err;
}

// A new user wants the answer, and the construction of the net only if something is wrong.
TEST(Terminal, VerbsWithAnAnswerDoNotLogTheNet) {
  const Folder folder;
  prepare(folder);
  for (const char* command :
       {"crema summary -model net.prototxt", "crema deploy -model net.prototxt",
        "crema check -solver solver.prototxt"}) {
    const Outcome outcome = run(folder, command);
    EXPECT_EQ(outcome.err.find("Creating Layer"), std::string::npos) << command;
    EXPECT_NE(outcome.out, "") << command;
  }
}

TEST(Terminal, HelpFitsAndIsThatOfTheVerb) {
  const Folder folder;
  const Outcome all = run_shell(
      folder,
      "for verb in $(\"$TOOLS\"/crema help | sed -n 's/^  \\([a-z][a-z_]*\\)  *.*/\\1/p'); do "
      "echo \"VERB $verb\"; \"$TOOLS\"/crema help $verb; done; \"$TOOLS\"/crema help");
  std::string verb, flags;
  bool example = false;
  int verbs = 0, examples = 0;
  std::vector<std::pair<std::string, std::string>> used;  // verb, flag
  std::vector<std::string> known;
  for (const std::string& line : split(all.out, '\n')) {
    if (starts_with(line, "VERB ")) {
      verb = line.substr(5);
      ++verbs;
    } else {
      EXPECT_LE(line.size(), 80u) << verb << ": " << line;
    }
    if (starts_with(line, "  -"))
      known.push_back(verb + " " + line.substr(2, line.find(' ', 2) - 2));
    if (line == "example:") ++examples, example = true;
    if (line.empty()) example = false;
    if (!example) continue;
    for (const std::string& word : split(trim(line), ' ')) {
      if (starts_with(word, "-") && word.size() > 1) used.emplace_back(verb, word);
      const bool file = starts_with(word, "models/") && ends_with(word, ".prototxt");
      EXPECT_TRUE(!file || file_exists(CREMA_TEST_DATA "/../" + word)) << verb << ": " << word;
    }
  }
  EXPECT_GT(verbs, 30);
  EXPECT_EQ(examples, verbs);
  for (const auto& [of, flag] : used)
    EXPECT_EQ(std::count(known.begin(), known.end(), of + " " + flag), 1) << of << " " << flag;
  // A flag's meaning for another verb is no help here.
  for (const char* other : {"In train", "db peek without", "For train and test", "for parse_log",
                            "Of train", "of surgery", "Converters:", "of create_label_map"})
    EXPECT_EQ(all.out.find(other), std::string::npos) << other;
  for (const std::string& line : split(on_terminal(folder, "crema help train", 60), '\n'))
    EXPECT_LE(line.size(), 61u) << line;  // with its carriage return
}

TEST(Terminal, VersionInAllForms) {
  const Folder folder;
  const std::string text = run(folder, "crema version").out;
  expect_part(text, "crema version ");
  for (const char* form : {"crema -version", "crema --version"})
    EXPECT_EQ(run(folder, form).out, text) << form;
}

}  // namespace terminal_test
}  // namespace crema::tests
