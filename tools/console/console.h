// Console: the log on stderr. A terminal shows `error: ...` and `warning: ...` in colours; pipes and
// files get Caffe's lines, which its parsers read.
#pragma once

#include <glog/logging.h>

#include <string>

namespace crema {

// How much a terminal shows besides warnings and errors.
enum class LogStyle {
  timed,  // Caffe's lines, with their times
  plain,  // the messages alone
  brief,  // only those of the verb itself, in pipes too; -v 1 shows the library's
};

// Changes defaults of glog's flags, before any are read: as in `caffe`, lines go to stderr and to
// files in the temporary folder, and their prefix has glog's older form without the year.
void set_log_defaults();

// Initializes glog, which writes its files as always, and takes stderr away from it. glog's flags
// for stderr keep their meaning: -logtostderr, -alsologtostderr, -stderrthreshold. `quiet`: stderr
// gets warnings and errors only.
void start_logging(const char* program, LogStyle style, bool quiet);

// glog's -v.
int log_verbosity();

// While one lives, this thread's log goes to files only, except for warnings and errors.
class OffConsole {
 public:
  explicit OffConsole(bool off);
  ~OffConsole();
  OffConsole(const OffConsole&) = delete;
  OffConsole& operator=(const OffConsole&) = delete;

 private:
  bool before_;
};

// While one lives, errors and warnings of this thread that a terminal shows link the name of this
// layer, in `layer "name"`, to an address; "": to none. Pipes and files get no links.
class LinkedLayer {
 public:
  LinkedLayer(std::string name, std::string address);
  ~LinkedLayer();
  LinkedLayer(const LinkedLayer&) = delete;
  LinkedLayer& operator=(const LinkedLayer&) = delete;

 private:
  friend std::string with_link(const std::string& text);
  std::string name_, address_;
  const LinkedLayer* before_;
};

// One line with its line break, as Caffe's glog wrote it: without the year.
std::string caffe_line(google::LogSeverity severity, const char* file, int line,
                       const google::LogMessageTime& time, const std::string& message);

}  // namespace crema
