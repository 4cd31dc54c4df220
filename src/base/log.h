// Where log lines go. The library writes to the Log it is handed; a program decides what a line
// becomes (glog, a list in a test, nothing).
#pragma once

#include <source_location>
#include <string_view>

namespace crema {

enum class Severity { info, warning, error };

class Log {
 public:
  virtual ~Log() = default;
  // One line without its newline. Thread-safe in every implementation.
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

  // Detail asked for with -v: lines of a level above it are not worth building.
  int verbosity = 0;
};

// Drops every line.
Log& silent_log();

}  // namespace crema
