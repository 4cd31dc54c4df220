// The input of `crema scale` about training on one device: the times of its steps and which
// gradients are final after which of them. It is measured, or read from a file of an earlier run.
#pragma once

#include <string>
#include <vector>

#include "solver/ranks/gradient_buckets.h"

namespace crema {

struct StepProfile {
  std::string net, device;
  int64_t batch = 1;             // samples of a forward pass
  int iter_size = 1;             // passes of an iteration
  int64_t element_size = 4;      // bytes of a gradient in memory
  double forward = 0;            // seconds of a pass
  std::vector<double> backward;  // seconds of each node of the plan, in the order of forward
  double update = 0;             // seconds
  std::vector<GradientRange> gradients;

  double backward_seconds() const;
  // The time of an iteration on one device.
  double iteration_seconds() const;
  int64_t samples() const { return batch * iter_size; }
  // Elements that have gradients, without gaps and padding.
  int64_t gradient_elements() const;
};

// Error when it is nothing to predict from: times that are no numbers, gradients of steps that do
// not exist.
void check_profile(const StepProfile& profile);

std::string json_of(const StepProfile& profile);
// Error when the text is not what json_of() writes; `path` names it.
StepProfile profile_of_json(const std::string& text, const std::string& path);

}  // namespace crema
