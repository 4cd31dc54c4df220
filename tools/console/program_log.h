// ProgramLog: writes lines through glog; on a terminal it keeps one status line below them.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "base/log.h"
#include "tools/console/console.h"

namespace crema {

class ProgramLog : public TextLog {
 public:
  ProgramLog(LogStyle style, bool quiet);
  ~ProgramLog() override;

  // Writes one glog line, with the file and line of the code that logged it as prefix.
  void write(Severity severity, const std::source_location& where, std::string_view line) override;
  void write_text(const std::source_location& where, std::string_view lines) override;

  // For the library's own lines, such as those about the construction of a net, as Caffe logs it. In
  // the brief style they go to files only, unless -v 1 is given.
  Log& library();

  // A line of the result that the verb is there for: logged, and with -quiet printed on stdout.
  void answer(std::string_view line, std::source_location where = std::source_location::current());

  // From now on answers are only logged: the verb prints its result in another form.
  void print_no_answers() { prints_answers_ = false; }

  // Adds every line to this file, too, from now on and until the program ends, which may be later
  // than this object: the message of an error comes last. The file is `path` in messages.
  void copy_to(int descriptor, const std::string& path);

  // From now on errors only, and no status: another rank logs the rest.
  void only_errors();

  // No status from now on: a launcher's pipes look like a terminal.
  void no_status() { terminal_ = -1; }

  // Whether there is a terminal to show a status on; pipes and files never get one.
  bool has_terminal() const { return terminal_ >= 0; }
  // Replaces the status line; "" removes it. Its parts, separated by two blanks, are shown as far
  // as they fit into the terminal's width. Log lines never break it.
  void show_status(const std::string& text);

 private:
  class LibraryLog : public TextLog {
   public:
    explicit LibraryLog(ProgramLog& log) : log_(log) {}
    void write(Severity severity, const std::source_location& where,
               std::string_view line) override;
    void write_text(const std::source_location& where, std::string_view lines) override;

   private:
    ProgramLog& log_;
  };

  void put(Severity severity, const std::source_location& where, std::string_view message,
           bool off_console = false);
  void warn_of_copy();
  void erase();
  void draw();

  LogStyle style_;
  LibraryLog library_{*this};
  std::mutex mutex_;
  bool only_errors_ = false, prints_answers_;
  int terminal_ = -1;  // file descriptor
  bool colour_ = false;
  std::string status_;
  std::string copy_path_;
  std::shared_ptr<std::atomic<int>> copy_error_;  // errno of the write that failed; 0: none did
};

}  // namespace crema
