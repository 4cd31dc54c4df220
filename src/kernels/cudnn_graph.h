// A graph of cuDNN operations with the plan that runs it: the best of several that were timed, or
// the first that works. Only files of a CUDA build include it.
#pragma once

#define CUDNN_FRONTEND_SKIP_JSON_LIB  // graphs are not written to files
#include <cudnn_frontend.h>

#include <optional>
#include <string>
#include <vector>

#include "device/gpu.h"
#include "tensor/precision.h"

namespace crema {

class CudnnGraph {
 public:
  using Graph = cudnn_frontend::graph::Graph;
  using Attributes = std::shared_ptr<cudnn_frontend::graph::Tensor_attributes>;

  // Tensors of the graph are of `storage` unless one says otherwise; sums are float32.
  explicit CudnnGraph(DType storage);
  Graph& graph() { return graph_; }
  // A tensor of these dims and strides that lies in memory, known by `uid` when the graph runs.
  Attributes input(const std::vector<int64_t>& dims, const std::vector<int64_t>& strides,
                   int64_t uid);
  void output(const Attributes& tensor, const std::vector<int64_t>& dims,
              const std::vector<int64_t>& strides, int64_t uid);

  // Makes the plan. `key` says what the graph computes: plans are remembered by it. False with the
  // reason when cuDNN has no plan. Engines that add in another order on each run are left out, and
  // with fp32 those that round.
  bool build(Context& context, Precision precision, const std::string& key, std::string& reason);
  size_t workspace() const { return workspace_; }

  struct Bound {
    int64_t uid;
    void* memory;
  };
  void run(Context& context, const std::vector<Bound>& tensors, void* workspace);

 private:
  struct Extent {
    int64_t uid;
    size_t bytes;
  };
  bool use(int64_t plan);
  // None: there is no memory to try them in.
  std::optional<int64_t> fastest(Context& context, const std::vector<int64_t>& plans);
  double time(Context& context, int64_t plan, std::vector<Bound>& tensors, void* workspace);

  Graph graph_;
  size_t element_;
  std::vector<Extent> extents_;
  int64_t plan_ = 0;
  size_t workspace_ = 0;
};

}  // namespace crema
