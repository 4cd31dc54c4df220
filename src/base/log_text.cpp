#include "base/log_text.h"

namespace crema {

void log_text(Log& log, std::string_view lines, std::source_location where) {
  if (auto* const texts = dynamic_cast<TextLog*>(&log)) return texts->write_text(where, lines);
  log.info(lines, where);
}

}  // namespace crema
