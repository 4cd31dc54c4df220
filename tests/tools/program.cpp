#include "tools/program.h"

#include <sys/wait.h>

#include <cstdlib>
#include <regex>
#include <sstream>

namespace crema::tests {

namespace {

struct LogMessage {
  char level;
  std::string text;
};

std::vector<LogMessage> parse_log(const std::string& log) {
  // Month and day, or year, month and day in logs of newer glog versions.
  static const std::regex prefix(
      R"(^([IWEF])\d{4,8} \d\d:\d\d:\d\d\.\d{6} +\d+ [A-Za-z0-9_.]+:\d+\] ([\s\S]*)$)");
  std::vector<LogMessage> messages;
  std::istringstream lines(log);
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, match, prefix)) {
      messages.push_back({match[1].str()[0], match[2].str()});
    } else if (!messages.empty()) {
      messages.back().text += "\n" + line;
    }
  }
  return messages;
}

}  // namespace

std::vector<std::string> Outcome::messages() const {
  std::vector<std::string> texts;
  for (const LogMessage& message : parse_log(err)) texts.push_back(message.text);
  return texts;
}

std::vector<std::string> Outcome::errors() const {
  std::vector<std::string> texts;
  for (const LogMessage& message : parse_log(err)) {
    if (message.level == 'E' || message.level == 'F') texts.push_back(message.text);
  }
  return texts;
}

std::string own_environment(const Folder& folder) {
  return "unset CREMA_FLAGS; export XDG_CONFIG_HOME='" + folder.file(".config") + "'; ";
}

Outcome run(const Folder& folder, const std::string& command, const std::string& within) {
  return run_shell(folder, "\"$TOOLS\"/" + command, within);
}

Outcome run_shell(const Folder& folder, const std::string& script, const std::string& within) {
  const std::string out = folder.file(".stdout"), err = folder.file(".stderr");
  std::filesystem::create_directories(folder.file(".log"));
  const std::string line = own_environment(folder) + "cd '" + folder.file(within) +
                           "' && export TOOLS='" CREMA_TOOLS "' GLOG_log_dir='" +
                           folder.file(".log") + "'; (" + script + ") >'" + out + "' 2>'" + err +
                           "'";
  const int status = std::system(line.c_str());
  Outcome outcome;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = read_file(out);
  outcome.err = read_file(err);
  return outcome;
}

std::string limit_memory(int megabytes) {
  return cat("ulimit -v $(( ", megabytes,
             " * 1000 + $(stat -Lc %s \"$TOOLS\"/../lib/libcrema.so) / 1000 )); "
             "export OMP_NUM_THREADS=1; ");
}

}  // namespace crema::tests
