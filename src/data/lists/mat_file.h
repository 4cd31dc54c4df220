// Reads and writes arrays in MATLAB's files: versions 5 to 7, compressed or not, are read; version 5,
// not compressed, is written. Label maps and scores of segmentation nets are published so.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace crema {

struct MatArray {
  std::vector<int64_t> extents;  // at least two
  std::vector<double> values;    // the first extent varies fastest
};

// `file`: the content of a file. `name` is a variable, or a field of a struct, "GTcls.Segmentation";
// of a cell or an array of structs it is the first element. The Error gives the reason, and the
// names that there are.
MatArray read_mat(std::string_view file, const std::string& name);

// The content of a file with one variable of class single.
std::string mat_of(const std::string& name, const std::vector<int64_t>& extents,
                   const float* values);

}  // namespace crema
