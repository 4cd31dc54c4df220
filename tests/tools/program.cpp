#include "tools/program.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace crema::test {

namespace fs = std::filesystem;

namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

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

Folder::Folder() {
  std::string pattern = (fs::temp_directory_path() / "crema_test_XXXXXX").string();
  if (!mkdtemp(pattern.data())) throw std::runtime_error("cannot make a temporary folder");
  path_ = pattern;
}

Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void Folder::write(const std::string& name, const std::string& text) const {
  fs::create_directories(fs::path(file(name)).parent_path());
  std::ofstream(file(name), std::ios::binary) << text;
}

std::string Folder::read(const std::string& name) const { return content_of(file(name)); }

bool Folder::has(const std::string& name) const { return fs::exists(file(name)); }

void Folder::copy_golden(const std::string& from, const std::string& to) const {
  fs::copy(fs::path(CREMA_TEST_DATA) / "goldens" / from, file(to), fs::copy_options::recursive);
}

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

Outcome run(const Folder& folder, const std::string& command, const std::string& within) {
  return run_shell(folder, "\"$TOOLS\"/" + command, within);
}

Outcome run_shell(const Folder& folder, const std::string& script, const std::string& within) {
  const std::string out = folder.file(".stdout"), err = folder.file(".stderr");
  fs::create_directories(folder.file(".log"));
  const std::string line =
      "cd '" + folder.file(within) + "' && export TOOLS='" CREMA_TOOLS "' GLOG_log_dir='" +
      folder.file(".log") + "'; (" + script + ") >'" + out + "' 2>'" + err + "'";
  const int status = std::system(line.c_str());
  Outcome outcome;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = content_of(out);
  outcome.err = content_of(err);
  return outcome;
}

}  // namespace crema::test
