// Reads matrices from MATLAB's files (version 5 to 7, compressed or not), as label maps are published.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace crema {

struct MatMatrix {
  int64_t height = 0, width = 0;
  std::vector<double> values;  // column after column
  double at(int64_t row, int64_t column) const {
    return values[static_cast<size_t>(column * height + row)];
  }
};

// `file`: the content of a file. `name` is a variable, or a field of a struct, "GTcls.Segmentation";
// of a cell or an array of structs it is the first element. The Error gives the reason, and the
// names that there are.
MatMatrix read_mat(std::string_view file, const std::string& name);

}  // namespace crema
