#include "tools/program_log.h"

#include <glog/logging.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/visible.h"

namespace crema {

namespace {

google::LogSeverity glog_severity(Severity severity) {
  switch (severity) {
    case Severity::info:
      return google::GLOG_INFO;
    case Severity::warning:
      return google::GLOG_WARNING;
    case Severity::error:
      return google::GLOG_ERROR;
  }
  return google::GLOG_ERROR;
}

void show(int terminal, const std::string& text) {
  // A terminal that has gone away must not end the training.
  [[maybe_unused]] const ssize_t written = ::write(terminal, text.data(), text.size());
}

}  // namespace

ProgramLog::ProgramLog() {
  // Log lines go to stderr, so the status goes there too; to stdout when stderr is redirected.
  terminal_ = isatty(STDERR_FILENO) ? STDERR_FILENO : isatty(STDOUT_FILENO) ? STDOUT_FILENO : -1;
}

ProgramLog::~ProgramLog() { show_status(""); }

void ProgramLog::write(Severity severity, const std::source_location& where,
                       std::string_view line) {
  put(severity, where, visible(line));
}

void ProgramLog::write_text(const std::source_location& where, std::string_view lines) {
  put(Severity::info, where, lines);
}

void ProgramLog::put(Severity severity, const std::source_location& where,
                     std::string_view message) {
  std::lock_guard lock(mutex_);
  erase();
  google::LogMessage(where.file_name(), static_cast<int>(where.line()), glog_severity(severity))
          .stream()
      << message;
  draw();
}

void ProgramLog::show_status(const std::string& text) {
  if (!has_terminal()) return;
  std::lock_guard lock(mutex_);
  erase();
  status_ = text;
  draw();
}

void ProgramLog::erase() {
  if (!status_.empty()) show(terminal_, "\r\033[K");
}

void ProgramLog::draw() {
  if (status_.empty()) return;
  winsize size{};
  const size_t width =
      ioctl(terminal_, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
  show(terminal_, "\r" + status_.substr(0, width));
}

}  // namespace crema
