// Matrices of weights that several formats need in another form.
#pragma once

#include <cstdint>
#include <vector>

namespace crema {

// Divides each row w by sqrt(|w|^2 + 1e-6), as InnerProduct does with `normalize`. rows: how many
// there are.
std::vector<float> unit_rows(std::vector<float> weights, int64_t rows);

}  // namespace crema
