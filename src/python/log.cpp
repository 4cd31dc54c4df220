#include "python/log.h"

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "base/error.h"
#include "base/visible.h"
#include "python/bindings.h"
#include "python/mode.h"

namespace crema::python {

namespace py = pybind11;

namespace {

constexpr int kSilent = 3, kErrors = 2;

std::string prefix(Severity severity, std::string_view file, int line) {
  using std::chrono::system_clock, std::chrono::microseconds;
  const auto now = system_clock::now();
  const std::time_t seconds = system_clock::to_time_t(now);
  const long part =
      std::chrono::duration_cast<microseconds>(now.time_since_epoch()).count() % 1000000;
  std::tm parts{};
  localtime_r(&seconds, &parts);
  file.remove_prefix(file.rfind('/') == std::string_view::npos ? 0 : file.rfind('/') + 1);
  char text[80];
  std::snprintf(text, sizeof text, "%c%02d%02d %02d:%02d:%02d.%06ld %5d ",
                "IWE"[static_cast<int>(severity)], parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                parts.tm_min, parts.tm_sec, part, static_cast<int>(gettid()));
  return cat(text, file, ":", line, "] ");
}

// The line of a script that calls.
void log_from_python(const std::string& message) {
  std::string file = "python";
  int line = 0;
  try {
    const py::object frame = py::module_::import("sys").attr("_getframe")();
    file = frame.attr("f_code").attr("co_filename").cast<std::string>();
    line = frame.attr("f_lineno").cast<int>();
  } catch (const py::error_already_set&) {  // called from no frame
  }
  the_log().put(Severity::info, file, line, visible(message));
}

void init_log(int level, bool to_stderr) {
  require(level >= 0 && level <= kSilent, "init_log(", level,
          "): expected 0 (everything), 1 (warnings and errors), 2 (errors) or 3 (nothing)");
  the_log().set_level(to_stderr ? level : std::max(level, kErrors));
}

}  // namespace

ModuleLog& the_log() {
  // Never destroyed: threads may log while the interpreter ends.
  static ModuleLog* const log = new ModuleLog;
  return *log;
}

TextLog& module_log() { return the_log(); }

ModuleLog::ModuleLog() {
  const char* const level = std::getenv("GLOG_minloglevel");
  if (level && *level >= '0' && *level <= '9') level_ = std::min(std::atoi(level), kSilent);
}

void ModuleLog::write(Severity severity, const std::source_location& where, std::string_view line) {
  put(severity, where.file_name(), static_cast<int>(where.line()), visible(line));
}

void ModuleLog::write_text(const std::source_location& where, std::string_view lines) {
  put(Severity::info, where.file_name(), static_cast<int>(where.line()), lines);
}

// In one write, so that lines of several threads and processes do not mix.
void ModuleLog::put(Severity severity, std::string_view file, int line,
                    std::string_view message) const {
  if (static_cast<int>(severity) < level_) return;
  const std::string text = cat(prefix(severity, file, line), message, "\n");
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

void bind_log(py::module_& module) {
  module.def(
      "_exchange_log_level",
      [](int level) {
        const int before = the_log().level();
        the_log().set_level(level);
        return before;
      },
      py::arg("level"),
      "Sets which lines of the log are written, see init_log, and returns what that was before.");
  module.def(
      "init_log", &init_log, py::arg("level") = 0, py::arg("stderr") = true,
      "Chooses which lines of the log are written to stderr: 0 all of them (that is so from the "
      "start,\nunless the environment variable GLOG_minloglevel says another number when crema "
      "is imported),\n1 warnings and errors, 2 errors, 3 nothing. With stderr=False only errors.");
  module.def("log", &log_from_python, py::arg("message"),
             "Writes a line to the log, with the file and line of the caller.");
}

}  // namespace crema::python
