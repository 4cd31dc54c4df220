// ProgramLog: writes Caffe's lines through glog; on a terminal it keeps one status line below them.
#pragma once

#include <mutex>
#include <string>

#include "base/log_text.h"

namespace crema {

class ProgramLog : public TextLog {
 public:
  ProgramLog();
  ~ProgramLog() override;

  // Writes one glog line, with the file and line of the library code that logged it as prefix.
  void write(Severity severity, const std::source_location& where, std::string_view line) override;
  void write_text(const std::source_location& where, std::string_view lines) override;

  // Whether there is a terminal to show a status on; pipes and files never get one.
  bool has_terminal() const { return terminal_ >= 0; }
  // Replaces the status line, cut to the terminal's width; "" removes it. Log lines never break it.
  void show_status(const std::string& text);

 private:
  void put(Severity severity, const std::source_location& where, std::string_view message);
  void erase();
  void draw();

  std::mutex mutex_;
  int terminal_ = -1;  // file descriptor
  std::string status_;
};

}  // namespace crema
