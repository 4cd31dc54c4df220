// RateSearch: reads a training whose learning rate rises, and finds the rate from which the loss
// falls best (L. N. Smith, "Cyclical learning rates for training neural networks", 2015).
#pragma once

#include <vector>

#include "solver/events/events.h"

namespace crema {

struct RatePoint {
  double rate = 0;      // of an update
  double loss = 0;      // before it
  double smoothed = 0;  // the loss, as rate_proposal() smooths it
};

class RateSearch : public EventReader {
 public:
  // Needs a display in every iteration.
  void read(const Event& event) override;

  // Whether the running mean of the losses has grown to four times its smallest value, or the loss
  // is no number: larger rates tell nothing more.
  bool diverged() const { return diverged_; }
  const std::vector<RatePoint>& points() const { return points_; }

 private:
  double loss_ = 0;
  double mean_ = 0, weight_ = 0;  // of the last losses
  double best_ = 0;
  bool diverged_ = false;
  std::vector<RatePoint> points_;
};

// What a rising rate did to the loss.
struct RateProposal {
  double steepest = 0;  // the rate at which the smoothed loss falls fastest
  double minimum = 0;   // and at which it is smallest
  double proposed = 0;  // a tenth of that; 0: the loss fell by no more than noise
  double loss = 0;      // smoothed, at the minimum
  bool at_end = false;  // the minimum is where the search ended: a larger rate may be better still
};

// Fills in the smoothed losses: over the neighbours of each point within a twentieth of all, which
// unlike a running mean shifts nothing to larger rates. Points must begin with the smallest rate.
RateProposal rate_proposal(std::vector<RatePoint>* points);

}  // namespace crema
