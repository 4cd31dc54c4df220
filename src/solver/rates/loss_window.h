// LossWindow: the displayed loss, the mean over the last `average_loss` iterations.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace crema {

class LossWindow {
 public:
  explicit LossWindow(int average_loss) : average_(average_loss) {}

  void add(int64_t iteration, double loss);
  // The iteration after the last one added; 0 at the start.
  int64_t next() const { return losses_.empty() ? 0 : losses_.back().iteration + 1; }
  // Mean of the losses of the last average_loss iterations up to this one, as far as they are
  // available.
  double mean(int64_t iteration) const;

  // store() gives the losses that means after `iteration` updates may still need, oldest first;
  // restore() sets them.
  std::vector<float> store(int64_t iteration) const;
  void restore(int64_t iteration, const std::vector<float>& losses);

 private:
  struct Loss {
    int64_t iteration;
    float value;
  };
  int average_;
  std::deque<Loss> losses_;
};

}  // namespace crema
