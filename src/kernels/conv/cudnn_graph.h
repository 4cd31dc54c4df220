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

// The card that a graph is made for: a context's GPU, or one that is only described, of which can
// be asked what it supports.
class CudnnTarget {
 public:
  CudnnTarget(Context& context) : context_(&context) {}  // NOLINT: a context is a target
  // `json`: its properties as cuDNN writes them (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION). Error
  // when this cuDNN does not take them.
  explicit CudnnTarget(const std::string& json);

  Context* context() const { return context_; }  // null: only described
  cudnn_frontend::error_t describe_to(cudnn_frontend::graph::Graph& graph) const;

 private:
  Context* context_ = nullptr;
  std::shared_ptr<const cudnn_frontend::DeviceProperties> properties_;
  int version_ = 0;  // of its instructions: 90
};

class CudnnGraph {
 public:
  using Graph = cudnn_frontend::graph::Graph;
  // Plans with a larger workspace are tried only when there is no other.
  static constexpr size_t kWorkspaceLimit = size_t{256} << 20;

  using Attributes = std::shared_ptr<cudnn_frontend::graph::Tensor_attributes>;

  // Tensors of the graph are of `storage` unless one says otherwise; sums are float32.
  explicit CudnnGraph(DType storage);
  Graph& graph() { return graph_; }
  // A tensor of these dims and strides that lies in memory, known by `uid` when the graph runs.
  Attributes input(const std::vector<int64_t>& dims, const std::vector<int64_t>& strides,
                   int64_t uid);
  void output(const Attributes& tensor, const std::vector<int64_t>& dims,
              const std::vector<int64_t>& strides, int64_t uid);
  // Sums, a float32 for each channel; some engines add in another order on each run, which from now
  // on does not rule them out.
  void output_sums(const Attributes& tensor, int64_t channels, int64_t uid);

  // Makes the plan; for a card that is only described, says whether there is one. `key` says what
  // the graph computes, first in words, then precision and sizes: plans are remembered by it. False
  // with the reason when cuDNN has no plan. Engines that add in another order on each run are left
  // out (but see output_sums), and with fp32 those that round.
  bool build(const CudnnTarget& target, Precision precision, const std::string& key,
             std::string& reason);
  size_t workspace() const { return workspace_; }

  struct Bound {
    int64_t uid;
    void* memory;
  };
  void run(Context& context, const std::vector<Bound>& tensors, void* workspace);
  // Its tensors in the tuning's scratch memory, and a workspace behind them; none without that
  // much.
  struct Scratch {
    std::vector<Bound> tensors;
    void* workspace;
    template <typename T>
    T* at(int64_t uid) const {
      for (const Bound& bound : tensors) {
        if (bound.uid == uid) return static_cast<T*>(bound.memory);
      }
      return nullptr;
    }
  };
  std::optional<Scratch> scratch(Context& context) const;

 private:
  struct Extent {
    int64_t uid;
    size_t bytes;
  };
  bool find_plans(const CudnnTarget& target, Precision precision, std::string& reason);
  bool choose_plan(Context& context, const std::string& key, std::string& reason);
  bool use(int64_t plan);
  // None: there is no memory to try them in.
  std::optional<int64_t> fastest(Context& context, const std::vector<int64_t>& plans);
  double time(Context& context, int64_t plan, std::vector<Bound>& tensors, void* workspace);

  Graph graph_;
  size_t element_;
  bool any_order_ = false;
  std::vector<Extent> extents_;
  int64_t plan_ = 0;
  size_t workspace_ = 0;
};

}  // namespace crema
