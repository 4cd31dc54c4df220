// Maps modules of another framework's net to layers here: a text in the form of prototxt, with
// include, variables and repeat.
//   mean: [0.485, 0.456, 0.406]  std: [0.229, 0.224, 0.225]
//   pair { from: "layer1.0.conv1" to: "res2a_branch2a" }
#pragma once

#include <string>
#include <vector>

#include "net/prototxt/settings.h"

namespace crema {

struct WeightNames {
  struct Pair {
    std::string from, to;  // a module, whose tensors are "FROM.weight" ...; a layer
    std::string where;     // "torchvision.names:3:1"
    std::vector<std::string> tensors = {};    // of the parameters; empty: weight, bias
    int leading_ones = 0, trailing_ones = 0;  // more extents of the first tensor
    std::string old_from = {};                // the module in older files; "": the same
  };
  std::vector<Pair> pairs;
  bool own = false;  // the pairs are those of own_names(), not of a file
  // The input normalization in training: (x / 255 - mean) / std for R, G, B; empty if unknown.
  std::vector<float> mean, std;
  double eps = 1e-5;                  // of BatchNorm
  std::vector<std::string> left_out;  // modules
};

// `given` as in expand(). Error: "file:line:column: what".
WeightNames read_weight_names(const std::string& path, const Variables& given);

}  // namespace crema
