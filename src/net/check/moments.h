// Mean and deviation of a source's values.
#pragma once

#include <vector>

#include "net/check/source_facts.h"

namespace crema {

struct Moments {
  // After transform_param: the channels' means, squared and averaged, with the sign of their average; and
  // the deviation within each channel.
  double mean = 0, deviation = 0;
  double average = 0;      // after transform_param
  double stored_mean = 0;  // of the values in the source
  double square() const { return mean * mean + deviation * deviation; }
};

// transform: without a mean_file, and with as many mean values as there are channels, or one, or none.
Moments moments_of(const std::vector<SourceFacts::Channel>& channels,
                   const TransformationParameter& transform);

}  // namespace crema
