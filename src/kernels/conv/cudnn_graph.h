// A graph of cuDNN operations with its execution plan: the fastest of several benchmarked ones, or
// the first that works. Only files of a CUDA build include it.
#pragma once

#define CUDNN_FRONTEND_SKIP_JSON_LIB  // graphs are not written to files
#include <cudnn_frontend.h>

#include <future>
#include <optional>
#include <string>
#include <vector>

#include "device/gpu.h"
#include "tensor/precision.h"

namespace crema {

// The card that a graph is built for: a context's GPU, or a card known only by its description,
// which can still be queried for support.
class CudnnTarget {
 public:
  CudnnTarget(Context& context) : context_(&context) {}  // NOLINT: a context is a target
  // `json`: the card's properties as cuDNN writes them (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION).
  // Error when this cuDNN does not accept them.
  explicit CudnnTarget(const std::string& json);

  Context* context() const { return context_; }  // null: only described
  cudnn_frontend::error_t describe_to(cudnn_frontend::graph::Graph& graph) const;

 private:
  Context* context_ = nullptr;
  std::shared_ptr<const cudnn_frontend::DeviceProperties> properties_;
  int version_ = 0;  // compute capability: 90 for 9.0
};

class CudnnGraph {
 public:
  using Graph = cudnn_frontend::graph::Graph;
  // Plans with a larger workspace are tried only when there is no other.
  static constexpr size_t kWorkspaceLimit = size_t{256} << 20;

  using Attributes = std::shared_ptr<cudnn_frontend::graph::Tensor_attributes>;

  // Tensors of the graph have type `storage` unless one says otherwise; accumulation is in float32.
  explicit CudnnGraph(DType storage);
  Graph& graph() { return graph_; }
  // A tensor of these dims and strides in memory, identified by `uid` when the graph runs.
  Attributes input(const std::vector<int64_t>& dims, const std::vector<int64_t>& strides,
                   int64_t uid);
  void output(const Attributes& tensor, const std::vector<int64_t>& dims,
              const std::vector<int64_t>& strides, int64_t uid);
  // Per-channel sums in float32. Some engines add in a different order on each run; from now on
  // that does not rule them out.
  void output_sums(const Attributes& tensor, int64_t channels, int64_t uid);

  // Starts to look for plans, on a thread of its own: several graphs do at the same time. `key` says
  // what the graph computes, first in words, then precision and sizes: plans are cached under it.
  // Excludes engines that add in a different order on each run (but see output_sums) and, with fp32,
  // those that round.
  void start(const CudnnTarget& target, Precision precision, const std::string& key);
  // Then builds the plan; for a card that is only described, says whether there is one. False with
  // the reason when cuDNN has no plan.
  bool build(std::string& reason);
  size_t workspace() const { return workspace_; }

  struct Bound {
    int64_t uid;
    void* memory;
  };
  void run(Context& context, const std::vector<Bound>& tensors, void* workspace);
  // Its tensors in the tuning's scratch memory, followed by a workspace; none without that much.
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
  bool look(const std::optional<std::string>& known);
  bool recall(const std::string& name);
  bool find_plans();
  bool exclude();  // unwanted plans; false: none is left
  bool choose_plan(Context& context, std::string& reason);
  // Builds plans from `next` on, at most `wanted` of them, at the same time. Moves `next` behind
  // them and returns those that can run.
  std::vector<int64_t> build_some(int64_t& next, int wanted);
  bool use(int64_t plan);
  // Milliseconds of a plan; a very large value when it cannot run. best: of those before it.
  double time(Context& context, int64_t plan, const Scratch& memory, double best);

  Graph graph_;
  size_t element_;
  bool any_order_ = false;
  std::vector<Extent> extents_;
  std::optional<CudnnTarget> target_;
  Precision precision_ = Precision::fp32;
  std::string key_, reason_;
  int64_t plan_ = 0;
  size_t workspace_ = 0;
  std::future<bool>
      found_;  // of look(), which writes graph_ and reason_; the last member: waits first
};

}  // namespace crema
