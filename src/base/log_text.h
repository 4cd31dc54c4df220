// Log messages of several lines.
#pragma once

#include "base/log.h"

namespace crema {

// A Log that tells texts of several lines from lines: what breaks a line of its write() has come
// with a name out of a file, and is written as visible() shows it.
class TextLog : public Log {
 public:
  virtual void write_text(const std::source_location& where, std::string_view lines) = 0;
};

// A prototxt, in which protobuf has escaped all texts, as one message, as Caffe logs nets.
void log_text(Log& log, std::string_view lines,
              std::source_location where = std::source_location::current());

}  // namespace crema
