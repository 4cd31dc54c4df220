// The module's log: lines as glog writes them, on stderr.
#pragma once

#include <atomic>
#include <string_view>

#include "base/log.h"

namespace crema::python {

class ModuleLog : public TextLog {
 public:
  // The lowest severity that is written: that of the variable GLOG_minloglevel, as with glog.
  ModuleLog();
  void write(Severity severity, const std::source_location& where, std::string_view line) override;
  void write_text(const std::source_location& where, std::string_view lines) override;
  // A line of a Python file.
  void put(Severity severity, std::string_view file, int line, std::string_view message) const;
  // 0: everything; 1: warnings and errors; 2: errors; 3: nothing.
  void set_level(int level) { level_ = level; }
  int level() const { return level_; }

 private:
  std::atomic<int> level_ = 0;
};

ModuleLog& the_log();

}  // namespace crema::python
