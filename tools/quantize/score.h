// The number that says how good a net is in its tests.
#pragma once

#include <string>

#include "net/net.h"

namespace crema {

struct Score {
  std::string name;  // the blob's
  double value = 0;
  bool is_share = true;  // an accuracy or a precision, from 0 to 1; otherwise a loss
  // What is lost from a to b: points, hundredths of a share, or the difference of losses.
  static double loss(const Score& a, const Score& b) {
    return a.is_share ? 100 * (a.value - b.value) : b.value - a.value;
  }
  std::string text() const;  // "accuracy 0.9875"
};

// Runs so many batches. The first Accuracy with top_k 1, else any other, or the mean average precision of a
// DetectionEvaluate; the loss if the net has none of these. Error if it is nan.
Score score_of(Net& net, int64_t batches);

}  // namespace crema
