// WarningsOnly: a log that keeps only warnings, for nets that are built on the side.
#pragma once

#include "base/log.h"

namespace crema {

class WarningsOnly : public Log {
 public:
  explicit WarningsOnly(Log& log) : log_(log) {}
  void write(Severity severity, const std::source_location& where, std::string_view line) override {
    if (severity != Severity::info) log_.write(severity, where, line);
  }

 private:
  Log& log_;
};

}  // namespace crema
