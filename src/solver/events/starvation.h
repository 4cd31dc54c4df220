// Starvation: notices a training that keeps waiting for its data.
#pragma once

#include <cstdint>

namespace crema {

class Starvation {
 public:
  // Called with each display: the share of its time, 0 to 1, that went into waiting, and how many
  // iterations it covers. True once, when that has been much for a while.
  bool begins(double share, int64_t iterations);

 private:
  bool started_ = false, told_ = false;
  int displays_ = 0;        // one after the other with much waiting
  int64_t iterations_ = 0;  // that they cover
};

}  // namespace crema
