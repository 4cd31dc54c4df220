#include "tools/console/program_log.h"

#include <glog/logging.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <utility>

#include "base/append_file.h"
#include "base/strings.h"
#include "base/visible.h"
#include "tools/console/terminal.h"

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

// Writes each line in one call, so that none is torn when the program is killed. Nothing may be
// logged in here; the log asks for the error. After a failure each line tries again.
class CopyOfLog : public google::LogSink {
 public:
  CopyOfLog(int descriptor, std::shared_ptr<std::atomic<int>> error)
      : file_(descriptor), error_(std::move(error)) {}

  void send(google::LogSeverity severity, const char*, const char* file, int line,
            const google::LogMessageTime& time, const char* message, size_t length) override {
    std::string text = caffe_line(severity, file, line, time, std::string(message, length));
    if (missing_ > 0) {
      text = caffe_line(google::GLOG_WARNING, file, line, time,
                        cat("Before this, ", missing_, missing_ == 1 ? " line is" : " lines are",
                            " missing that could not be written.")) +
             text;
    }
    const int problem = file_.append(text);
    missing_ = problem == 0 ? 0 : missing_ + 1;
    if (problem != 0) *error_ = problem;
  }

 private:
  AppendFile file_;
  size_t missing_ = 0;
  std::shared_ptr<std::atomic<int>> error_;
};

}  // namespace

ProgramLog::ProgramLog(LogStyle style, bool quiet) : style_(style), prints_answers_(quiet) {
  verbosity = log_verbosity();
  // Log lines go to stderr, so the status goes there too; to stdout when stderr is redirected.
  if (!quiet) {
    terminal_ = can_redraw(STDERR_FILENO)   ? STDERR_FILENO
                : can_redraw(STDOUT_FILENO) ? STDOUT_FILENO
                                            : -1;
  }
  colour_ = has_terminal() && has_colour(terminal_);
}

ProgramLog::~ProgramLog() { show_status(""); }

void ProgramLog::write(Severity severity, const std::source_location& where,
                       std::string_view line) {
  put(severity, where, visible(line));
}

void ProgramLog::write_text(const std::source_location& where, std::string_view lines) {
  put(Severity::info, where, lines);
}

void ProgramLog::answer(std::string_view line, std::source_location where) {
  info(line, where);
  if (prints_answers_ && !only_errors_) std::cout << visible(line) << "\n";
}

Log& ProgramLog::library() {
  if (style_ != LogStyle::brief || verbosity >= 1) return *this;
  return library_;
}

void ProgramLog::LibraryLog::write(Severity severity, const std::source_location& where,
                                   std::string_view line) {
  log_.put(severity, where, visible(line), true);
}

void ProgramLog::LibraryLog::write_text(const std::source_location& where, std::string_view lines) {
  log_.put(Severity::info, where, lines, true);
}

void ProgramLog::put(Severity severity, const std::source_location& where, std::string_view message,
                     bool off_console) {
  if (only_errors_ && severity != Severity::error) return;
  std::lock_guard lock(mutex_);
  const OffConsole off(off_console);
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
               << "; the training continues, and lines will be missing there.";
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
  show(terminal_,
       "\r" + painted(fitting(status_, columns_of(terminal_) - 1), Colour::cyan, colour_));
}

}  // namespace crema
