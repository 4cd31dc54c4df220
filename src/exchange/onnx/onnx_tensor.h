// OnnxTensor: a constant of an ONNX model, whatever form the file stores it in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/onnx.pb.h"
#include "tensor/shape.h"

namespace crema {

// Whole numbers and booleans are int64, all other types float.
struct OnnxTensor {
  Shape shape;
  bool is_int = false;
  std::vector<int64_t> ints;
  std::vector<float> floats;

  static OnnxTensor of_ints(std::vector<int64_t> values);  // a vector
  static OnnxTensor scalar(float value);

  int64_t count() const { return shape.count(); }
  double at(int64_t i) const { return is_int ? static_cast<double>(ints[i]) : floats[i]; }
  void resize(const Shape& to);  // the shape and room for its values
  std::vector<float> as_floats() const;
  std::vector<int64_t> as_ints() const;  // rounds towards zero
};

// Rounds towards zero; what does not fit becomes the nearest that does, and NaN becomes 0.
int64_t truncated(double value);

// More elements than this are refused: sizes come from files.
constexpr int64_t kMaxOnnxElements = int64_t{1} << 30;

// The same for constants that are computed from others.
constexpr int64_t kMaxFoldedElements = int64_t{1} << 27;  // VGG has a matrix of 103 million
void check_folded(const Shape& shape);

// The number of elements; Error for negative extents and for more than kMaxOnnxElements.
int64_t onnx_elements(const std::vector<int64_t>& dims, const std::string& what);

// Reads the values. `folder`: that of the model, for values in other files; these are regular files
// in this folder, or below it. `what` begins the messages. Error for types without a number form
// and for values that do not fill the shape.
OnnxTensor read_onnx_tensor(const onnx::TensorProto& tensor, const std::string& folder,
                            const std::string& what);

}  // namespace crema
