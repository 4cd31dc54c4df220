// Rows: the test cases of layers, one line each in rows/*.rows ('#' starts a comment line):
//
//   name | bottoms | layer text [| options]
//
// Bottoms are separated by blanks, each SHAPE or SHAPE:FILL. A shape is 2x3x8x7, or scalar. Fills:
//   normal           N(0, 1), when none is given
//   uniform(a,b)     between a and b
//   labels(n)        integers 0 to n-1
//   spaced           distinct values, well apart, never 0: for maxima and kinks
//   nonzero          normal with |x| >= 0.1
//   values(a,b,...)  these numbers, again and again
// Options are separated by blanks:
//   phase=TEST               TRAIN when absent
//   no_gradient              forward only
//   bottom_slopes=no         backward is run, but what bottoms get is a rule of the layer's own
//   parameter_slopes=no      the same of parameters
//   accumulation=no          backward is not run twice: it moves a state on
//   differentiable=0,2       bottoms whose gradient is checked; when absent, those the layer names
//   rounding_decides         which of two sums is the larger one, and so where a gradient goes: only
//                            the tops are compared where sums are rounded (tf32, 16 bits)
//   through_relu=2           the gradient of bottom 0 is taken through the ReLU that made it, and
//                            multiplied by this, the factor of a dropout behind that
//   gradient_tops=1          only the first k tops get a gradient (a mask has none)
//   tolerance=1e-4           float32 against float64, relative to the blob's largest magnitude
//   gradient_tolerance=1e-5  float64 gradient against central differences
//   step=1e-6                of the central differences
//   expect=1,0.5             the values of top 0
//   error=TEXT               setup, infer or forward must fail with a message that contains TEXT,
//                            which is the rest of the line
#pragma once

#include <string>
#include <vector>

#include "tensor/shape.h"

namespace crema {

struct RowBottom {
  Shape shape;
  std::string fill = "normal";
};

struct Row {
  std::string file, name, text;
  std::vector<RowBottom> bottoms;
  bool training = true;
  bool gradient = true;
  bool bottom_slopes = true, parameter_slopes = true, accumulation = true;
  bool rounding_decides = false;
  std::vector<int> differentiable;  // empty: the layer says
  int gradient_tops = -1;           // -1: all
  float through_relu = 0;           // 0: not
  double tolerance = 2e-5, gradient_tolerance = 1e-6, step = 1e-5;
  std::vector<double> expected;
  std::string error;

  std::string id() const;  // "conv_k3_pad1" of convolution.rows: "convolution_conv_k3_pad1"
};

// All rows of all files in the folder; Error with file and line for a row that cannot be read.
std::vector<Row> read_rows(const std::string& folder);

// The content of bottom `index`, the same for every call; numbers that are exact in float32.
std::vector<double> make_values(const Row& row, int index);

}  // namespace crema
