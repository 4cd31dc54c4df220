#include "tools/console/console.h"

#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "tools/console/terminal.h"

namespace crema {

namespace {

thread_local bool off_console = false;
thread_local const LinkedLayer* linked_layer = nullptr;

}  // namespace

std::string with_link(const std::string& text) {
  if (!linked_layer || linked_layer->address_.empty()) return text;
  const std::string begin = "layer \"", quoted = begin + linked_layer->name_ + "\"";
  const size_t at = text.find(quoted);
  if (at == std::string::npos) return text;
  return text.substr(0, at + begin.size()) + linked(linked_layer->name_, linked_layer->address_) +
         text.substr(at + quoted.size() - 1);
}

namespace {

Colour colour_of(google::LogSeverity severity) {
  return severity == google::GLOG_WARNING ? Colour::yellow : Colour::red;
}

class Console : public google::LogSink {
 public:
  Console(LogStyle style, int threshold)
      : style_(style),
        threshold_(threshold),
        terminal_(is_terminal(STDERR_FILENO)),
        colour_(has_colour(STDERR_FILENO)),
        links_(has_links(STDERR_FILENO)) {}

  // Writes each line in one call, so that those of several processes are not mixed. Nothing may be
  // logged in here.
  void send(google::LogSeverity severity, const char*, const char* file, int line,
            const google::LogMessageTime& time, const char* message, size_t length) override {
    if (severity < threshold_ || (off_console && severity == google::GLOG_INFO)) return;
    const std::string text(message, length);
    std::string out;
    if (severity == google::GLOG_INFO) {
      const bool plain = terminal_ && style_ != LogStyle::timed;
      out = plain ? text + "\n" : caffe_line(severity, file, line, time, text);
    } else if (terminal_) {
      out = painted(severity == google::GLOG_WARNING ? "warning:" : "error:", colour_of(severity),
                    colour_) +
            " " + (links_ ? with_link(text) : text) + "\n";
    } else {
      out = caffe_line(severity, file, line, time, painted(text, colour_of(severity), colour_));
    }
    // A terminal that has gone away must not end the program.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, out.data(), out.size());
  }

 private:
  LogStyle style_;
  int threshold_;
  bool terminal_, colour_, links_;
};

}  // namespace

void set_log_defaults() {
  FLAGS_alsologtostderr = true;
  FLAGS_log_year_in_prefix = false;
}

int log_verbosity() { return FLAGS_v; }

void start_logging(const char* program, LogStyle style, bool quiet) {
  google::InitGoogleLogging(program);
  int threshold =
      FLAGS_logtostderr || FLAGS_alsologtostderr ? google::GLOG_INFO : FLAGS_stderrthreshold;
  if (quiet) threshold = std::max<int>(threshold, google::GLOG_WARNING);
  if (FLAGS_logtostderr) {  // and to no file
    for (int severity = 0; severity < google::NUM_SEVERITIES; ++severity)
      google::SetLogDestination(severity, "");
  }
  // Never removed: main() logs an error when everything else is gone.
  try {
    google::AddLogSink(new Console(style, threshold));
  } catch (const std::bad_alloc&) {  // main() tries again, for its message
    google::ShutdownGoogleLogging();
    throw;
  }
  FLAGS_logtostderr = FLAGS_alsologtostderr = false;
  FLAGS_stderrthreshold = google::NUM_SEVERITIES;
}

OffConsole::OffConsole(bool off) : before_(off_console) { off_console = off_console || off; }

OffConsole::~OffConsole() { off_console = before_; }

LinkedLayer::LinkedLayer(std::string name, std::string address)
    : name_(std::move(name)), address_(std::move(address)), before_(linked_layer) {
  linked_layer = this;
}

LinkedLayer::~LinkedLayer() { linked_layer = before_; }

std::string caffe_line(google::LogSeverity severity, const char* file, int line,
                       const google::LogMessageTime& time, const std::string& message) {
  if (!FLAGS_log_prefix) return message + "\n";
  std::string text =
      google::LogSink::ToString(severity, file, line, time, message.data(), message.size()) + "\n";
  // It says the year in any case, and parsers of Caffe's logs know none: "I20260131 12:00:00".
  constexpr size_t kYear = 4, kDate = 8;
  if (!FLAGS_log_year_in_prefix && text.find_first_not_of("0123456789", 1) == 1 + kDate)
    text.erase(1, kYear);
  return text;
}

}  // namespace crema
