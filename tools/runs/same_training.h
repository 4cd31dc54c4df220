// Whether two trainings have come to the same, bit for bit.
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

// "": they are the same. Else what differs first, and by how much; names and hashes of files do not
// count.
std::string difference(const Training& expected, const Training& found);

}  // namespace crema
