#include "base/log.h"

namespace crema {

Log& silent_log() {
  class Silent : public Log {
    void write(Severity, const std::source_location&, std::string_view) override {}
  };
  static Silent log;
  return log;
}

void log_text(Log& log, std::string_view lines, std::source_location where) {
  if (auto* const texts = dynamic_cast<TextLog*>(&log)) return texts->write_text(where, lines);
  log.info(lines, where);
}

}  // namespace crema
