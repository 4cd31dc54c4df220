// The loss that is displayed: the mean over the last `average_loss` iterations. Losses are read
// from the device only where a displayed mean needs them.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace crema {

class LossWindow {
 public:
  // display 0: nothing is ever displayed.
  LossWindow(int average_loss, int display) : average_(average_loss), display_(display) {}

  // True when a displayed mean contains the loss of this iteration.
  bool needs(int64_t iteration) const;
  void add(int64_t iteration, double loss);
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
  int average_, display_;
  std::deque<Loss> losses_;
};

}  // namespace crema
