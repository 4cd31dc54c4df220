// Progress: the lines that say how far a conversion is.
#pragma once

#include <cstdint>
#include <string>

namespace crema {

class Progress {
 public:
  // `total`: the number of records to be made or left out.
  explicit Progress(int64_t total) : total_(total) {}

  // Caffe's line with the rate and the remaining time, if some seconds have passed since the last
  // one, otherwise "". `done` of the records are made or skipped, `written` are made.
  std::string line(double seconds, int64_t done, int64_t written);

  // Caffe's last line.
  static std::string last(int64_t written);

 private:
  int64_t total_;
  double said_ = 0;  // when
};

}  // namespace crema
