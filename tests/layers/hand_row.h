// A layer case that a test writes down itself, with values worked out by hand.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "layers/layer_run.h"

namespace crema {

inline Row row_of(const std::string& text, const std::vector<RowBottom>& bottoms) {
  Row row;
  row.file = "hand";
  row.name = "row";
  row.text = text;
  row.bottoms = bottoms;
  return row;
}

// Within `distance` of each other: 1e-9 where nothing is rounded but float64.
inline void expect_values(const std::vector<double>& want, const std::vector<double>& got,
                          double distance = 1e-9) {
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(want[i], got[i], distance) << "value " << i;
}

}  // namespace crema
