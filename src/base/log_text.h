// Log messages that span several lines.
#pragma once

#include "base/log.h"

namespace crema {

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
