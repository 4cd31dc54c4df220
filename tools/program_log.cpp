#include "tools/program_log.h"

#include <glog/logging.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/strings.h"
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

// As many of a line's parts, which two blanks divide, as there is room for.
std::string fitting(const std::string& line, size_t width) {
  if (line.size() <= width) return line;
  const size_t end = line.rfind("  ", width);
  return line.substr(0, end == std::string::npos ? width : end);
}

// Each line in one write, so that none is torn when the program is killed. Nothing may be logged in
// here; the log asks for the error.
class CopyOfLog : public google::LogSink {
 public:
  CopyOfLog(int descriptor, std::shared_ptr<std::atomic<int>> error)
      : descriptor_(descriptor), error_(std::move(error)) {}

  void send(google::LogSeverity severity, const char*, const char* file, int line,
            const google::LogMessageTime& time, const char* message, size_t length) override {
    if (*error_ != 0) return;
    std::string text = ToString(severity, file, line, time, message, length) + "\n";
    // It says the year in any case, and parsers of Caffe's logs know none: "I20260131 12:00:00".
    constexpr size_t kYear = 4, kDate = 8;
    if (!FLAGS_log_year_in_prefix && text.find_first_not_of("0123456789", 1) == 1 + kDate)
      text.erase(1, kYear);
    const ssize_t written = ::write(descriptor_, text.data(), text.size());
    if (written != static_cast<ssize_t>(text.size())) *error_ = written < 0 ? errno : ENOSPC;
  }

 private:
  int descriptor_;
  std::shared_ptr<std::atomic<int>> error_;
};

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
  if (only_errors_ && severity != Severity::error) return;
  std::lock_guard lock(mutex_);
  erase();
  google::LogMessage(where.file_name(), static_cast<int>(where.line()), glog_severity(severity))
          .stream()
      << message;
  if (copy_error_ && *copy_error_ != 0) warn_of_copy();
  draw();
}

void ProgramLog::copy_to(int descriptor, const std::string& path) {
  std::lock_guard lock(mutex_);
  copy_path_ = path;
  copy_error_ = std::make_shared<std::atomic<int>>(0);
  // Never removed: main() logs an error when this log and everything else is gone.
  google::AddLogSink(new CopyOfLog(descriptor, copy_error_));
}

void ProgramLog::only_errors() {
  only_errors_ = true;
  no_status();
}

void ProgramLog::warn_of_copy() {
  LOG(WARNING) << "Cannot write " << copy_path_ << ": " << std::strerror(*copy_error_)
               << "; it ends here, the training goes on.";
  copy_error_.reset();
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
  show(terminal_, "\r" + fitting(status_, width));
}

}  // namespace crema
