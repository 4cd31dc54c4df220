// Average precision: how good the detections of one class are, as the area under precision over
// recall.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crema {

struct RankedDetection {
  float score = 0;
  bool right = false;  // it found an object that no better detection had found
};

// Error unless it is "11point" (VOC 2007), "MaxIntegral" (VOC 2012) or "Integral".
void check_precision_version(const std::string& version);

// Between 0 and 1; 0 without detections or objects. Equal scores count in the order given.
float average_precision(std::vector<RankedDetection> detections, int64_t objects,
                        const std::string& version);

}  // namespace crema
