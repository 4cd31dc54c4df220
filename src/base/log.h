// Log: the sink for log lines. The library writes to the Log that it is given; the program decides
// where lines go (glog, a list in a test, nowhere).
#pragma once

#include <source_location>
#include <string_view>

namespace crema {

enum class Severity { info, warning, error };

class Log {
 public:
  virtual ~Log() = default;
  // One line without its newline. Every implementation is thread-safe.
  virtual void write(Severity severity, const std::source_location& where,
                     std::string_view line) = 0;

  void info(std::string_view line, std::source_location where = std::source_location::current()) {
    write(Severity::info, where, line);
  }
  void warning(std::string_view line,
               std::source_location where = std::source_location::current()) {
    write(Severity::warning, where, line);
  }
  void error(std::string_view line, std::source_location where = std::source_location::current()) {
    write(Severity::error, where, line);
  }

  // The level set by -v: lines of a higher level need not be built.
  int verbosity = 0;
};

// Discards every line.
Log& silent_log();

// A Log that distinguishes multi-line texts from lines: a line break in a line passed to write()
// came with a name from a file, and is written as visible() shows it.
class TextLog : public Log {
 public:
  virtual void write_text(const std::source_location& where, std::string_view lines) = 0;
};

// Logs a prototxt, in which protobuf has escaped all strings, as one message, as Caffe logs nets.
void log_text(Log& log, std::string_view lines,
              std::source_location where = std::source_location::current());

}  // namespace crema
