// The loss that is displayed: the mean over the last `average_loss` iterations.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace crema {

class LossWindow {
 public:
  explicit LossWindow(int average_loss) : average_(average_loss) {}

  void add(int64_t iteration, double loss);
  // The iteration after the last that is here; 0 at the start.
  int64_t next() const { return losses_.empty() ? 0 : losses_.back().iteration + 1; }
  // Mean of the losses of the last average_loss iterations up to this one, as far as they are
  // there.
  double mean(int64_t iteration) const;

  // Losses that means after `iteration` updates may still need, oldest first; and back.
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
