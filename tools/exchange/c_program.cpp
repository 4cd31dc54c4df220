#include "tools/exchange/c_program.h"

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/temporary.h"
#include "base/visible.h"
#include "tools/flags/shell_words.h"

namespace crema {

namespace {

int shell(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

CompiledC::CompiledC()
    : folder_(make_temporary((std::filesystem::temp_directory_path() / "crema_export").string(),
                             TemporaryEntry::Kind::folder)
                  .path) {
  const char* const named = std::getenv("CC");
  compiler_ = named != nullptr && *named != '\0' ? named : "cc";
}

CompiledC::~CompiledC() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string CompiledC::quoted(const char* name) const { return shell_quoted(file(name)); }

std::string CompiledC::problem() {
  if (shell(cat(compiler_, " --version > ", quoted("version"), " 2>&1")) != 0)
    return cat("there is no C compiler ", compiler_, "; set CC to one");
  const std::string text = read_file(file("version"));
  version_ = text.substr(0, text.find('\n'));
  if (starts_with(version_, compiler_ + " ")) version_ = version_.substr(compiler_.size() + 1);
  return "";
}

void CompiledC::compile(const std::string& source, const std::string& main_text) {
  source_ = source;
  write_file_atomically(file("run.c"), main_text);
  const std::string folder = std::filesystem::absolute(folder_of(source)).string();
  const std::string command =
      cat(compiler_, " -std=c99 -O2 -I ", shell_quoted(folder), " ", shell_quoted(source), " ",
          quoted("run.c"), " -o ", quoted("run"), " -lm > ", quoted("log"), " 2>&1");
  if (shell(command) != 0)
    fail(compiler_, " cannot compile ", visible(source), ":\n", read_file(file("log")));
}

std::string CompiledC::run(const std::string& input, const std::string& weights) {
  write_file_atomically(file("in"), input);
  const int code = shell(cat(quoted("run"), " ", quoted("in"), " ", quoted("out"), " ",
                             weights.empty() ? "" : shell_quoted(weights)));
  require(code == 0, "the program of ", visible(source_), " ended with code ", code);
  return read_file(file("out"));
}

std::string c_weights_array(size_t bytes) { return cat("static float w[", bytes / 4, "];\n"); }

const char* const kReadCWeights =
    "  FILE *const weights = fopen(argv[3], \"rb\");\n"
    "  if (!weights || fread(w, sizeof w, 1, weights) != 1) return 6;\n";

}  // namespace crema
