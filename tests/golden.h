// Cases computed with BVLC Caffe: tests/goldens/README.md describes them.
#pragma once

#include <string>
#include <vector>

#include "device/context.h"

namespace crema::tests {

// The outcome of one case: the largest error relative to its tolerance, and what went wrong.
struct CaseResult {
  double worst = 0;  // largest |x - reference| / max|reference|
  std::string worst_path;
  std::vector<std::string> failures;

  void fail(const std::string& path, const std::string& why);
  // Passes when |x - reference| <= relative * max|reference| + absolute everywhere.
  void compare(const std::string& path, const std::vector<double>& ours,
               const std::vector<double>& reference, double relative, double absolute);
  void merge(const CaseResult& other);
};

CaseResult run_layer_case(Context& context, const std::string& stem);
CaseResult run_training_case(Context& context, const std::string& folder);

}  // namespace crema::tests
