// Whether a net gives each sample of a batch what it gives that sample alone, tried with values.
#pragma once

#include <string>
#include <vector>

#include "crema.h"

namespace crema {

struct SampleTrial {
  std::vector<BlobInfo> inputs;
  std::vector<std::vector<float>> first, second;  // two samples: values of each input
  std::vector<std::string> by_sample;  // blobs that must have the samples along their first axis
  std::vector<std::string>
      by_sample_or_fixed;  // blobs that may be the same for all samples instead
};

// Reshapes the model. False if its layers cannot take a batch. DeviceLost is thrown.
bool samples_are_independent(Model& model, const SampleTrial& trial);

// The blobs that the layers with these outputs read.
std::vector<std::string> blobs_read_for(const std::vector<std::string>& outputs,
                                        const std::string& net_file);

}  // namespace crema
