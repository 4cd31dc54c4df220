// Loops of a graph, written out.
#pragma once

#include <cstdint>
#include <vector>

#include "proto/onnx.pb.h"

namespace crema {

struct UnrolledScan {
  std::vector<onnx::NodeProto> nodes;
  std::vector<onnx::TensorProto> constants;  // the body's, and others that the nodes read
};

// The operators of a Scan that runs along axis 0 of its sequences, step by step. Error for settings that
// export_onnx() does not write.
UnrolledScan unroll_scan(const onnx::NodeProto& scan, int64_t steps);

}  // namespace crema
