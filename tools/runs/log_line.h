// A line of a training log, as Caffe and glog have written it over the years.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace crema {

struct LogStamp {
  int year = 0;  // 0: the line does not say it
  int month = 1, day = 1;
  double seconds = 0;  // of the day
};

struct LogLine {
  // The process among several that write to one log: "1" of mpirun's "[1]", "0.0" of NVCaffe's
  // "[0.0]" before a message. "": it does not say.
  std::string rank;
  std::optional<LogStamp> stamp;
  std::string_view message;  // behind "file.cpp:12] "; all of a line without a stamp
};

// Text before the stamp is skipped: names of hosts, times of other tools. `line` outlives the
// result.
LogLine parse_log_line(std::string_view line);

// Seconds from one line to a later one. Without a year, a month that goes back belongs to the next
// year, and a 29th of February without lines did not exist.
double seconds_between(const LogStamp& before, const LogStamp& after);

}  // namespace crema
