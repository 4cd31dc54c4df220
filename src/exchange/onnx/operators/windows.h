// The windows of convolutions and poolings.
#pragma once

#include <vector>

#include "exchange/onnx/operator_import.h"

namespace crema {

class BlobShape;

struct OnnxWindows {
  std::vector<int64_t> kernel, stride, dilation, before, behind;  // for each spatial axis
  std::vector<int64_t> outputs;

  size_t axes() const { return kernel.size(); }
  int64_t span(size_t i) const { return (kernel[i] - 1) * dilation[i] + 1; }
  bool is_symmetric() const { return before == behind; }
};

// kernel: empty where an attribute gives it. `pending`: padding of the input that becomes part of
// the windows. Fills everything but outputs of ConvTranspose.
OnnxWindows read_onnx_windows(const OperatorImport& op, std::vector<int64_t> kernel,
                              const PendingPad* pending);

// One value if all are alike.
template <typename Field>
void set_extents(const std::vector<int64_t>& values, int64_t otherwise, Field* field) {
  bool alike = true;
  for (const int64_t value : values) alike = alike && value == values[0];
  if (alike && values[0] == otherwise) return;
  for (const int64_t value : values) {
    field->Add(static_cast<uint32_t>(value));
    if (alike) break;
  }
}

}  // namespace crema
