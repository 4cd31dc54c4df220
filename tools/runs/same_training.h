// Whether two runs have the same result, bit for bit.
#pragma once

#include <string>
#include <vector>

#include "proto/solver.pb.h"

namespace crema {

struct Training {
  struct Blob {
    std::string name;  // `layer "conv1", blob 0`
    std::vector<float> values;
  };
  std::vector<Blob> weights;
  SolverState state;
};

// "": they are the same. Otherwise the first difference and its size; names and hashes of files do
// not count.
std::string difference(const Training& expected, const Training& found);

}  // namespace crema
