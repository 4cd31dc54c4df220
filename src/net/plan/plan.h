// Plan: a graph rewritten by the passes (passes/), with memory and arguments for every step. A net
// runs it.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "device/capture.h"
#include "net/graph/graph.h"
#include "net/plan/arena.h"
#include "net/plan/folded.h"

namespace crema {

// A contiguous range of bytes in one of the plan's memories.
struct Storage {
  size_t bytes = 0;
  int first = -1, last = -1;  // steps of its lifetime; see Plan::step_count
  bool persistent = false;    // outside the arena: survives between passes
  bool workspace = false;     // of kernels, while a step runs
  size_t offset = 0;
  std::shared_ptr<Buffer> own;  // its own memory: a pass needed more than was planned
};

// How backward gets a value that it reads. Chosen by choose_recomputed().
enum class Storing {
  stored,      // written forward and kept
  recomputed,  // written forward, and a second time before backward reads it
  // Not written: its only reader works from the value's own input (Edge::affine).
  folded,
  folded_recomputed,  // folded forward, but written for the reader's backward
};

struct PlanValue : Value {
  Format format() const { return {order, nullptr, channels}; }
  size_t bytes() const { return static_cast<size_t>(format().elements(shape)) * size_of(dtype); }
  // Not written by forward.
  bool folded() const {
    return storing == Storing::folded || storing == Storing::folded_recomputed;
  }
  // Written for backward.
  bool recomputed() const {
    return storing == Storing::recomputed || storing == Storing::folded_recomputed;
  }
  Storing storing = Storing::stored;
  // A stale node would give its gradient: a program writes it instead.
  bool cut = false;
  int storage = -1;             // of its content
  int diff_storage = -1;        // of its gradient: the sum of its parts
  int recomputed_storage = -1;  // of the recomputed value, in backward
  // Written and read within the micro-batches only: shape and memory are those of one.
  bool in_micro_batch = false;
  int seed_storage = -1;  // persistent; holds the loss weight: a further part of the gradient
};

// Parts of a value's gradient, one from each reader, that are summed: into the first of them or,
// with keep_blobs, into a separate tensor, so that the parts stay as Caffe's Split layers show
// them.
struct DiffSum {
  int value = -1;
  std::vector<int> storages;
  std::vector<Tensor> parts;  // bound to memory
  Tensor sum;                 // likewise
};

// A node whose tops are recomputed before another node's backward.
struct Recomputation {
  int node = -1;
  Forward arguments;  // bound to memory
};

// What passes along the node's edges in addition to blobs and gradients. Filled by choose_edges().
struct NodeEdges {
  Edge bottom, top;                    // what Preparation requests, of bottom 0 and of top 0
  int statistics_reader = -1;          // the node that reads the statistics of top 0
  std::vector<int> statistics_makers;  // for each bottom the node that may compute them; or -1
};

// Shapes that change from pass to pass, because some layer is dynamic (LayerTraits). Filled by
// mark_dynamic_shapes(), changed by apply_dynamic_shapes() in each pass.
struct NodeShapes {
  bool dynamic = false;             // as its LayerTraits say
  bool depends_on_dynamic = false;  // a node before it is dynamic: its bottoms' shapes change
  // Has nothing to compute in this pass: its tops, or their inputs, are empty. The tops are then
  // zero, and so are its gradients.
  bool idle = false;
  std::vector<Shape> bottoms;  // the shapes that its arguments have
};

// Indices into Plan::storages; -1: none. Filled by plan_memory().
struct NodeStorages {
  std::vector<int> saved;
  int statistics = -1;  // of top 0, where prepared has them
  int affine = -1;      // instead of top 0, when that is folded
  int rounded = -1;     // of top 0, where prepared has them
  int forward_workspace = -1, backward_workspace = -1;
  std::vector<int> bottom_diffs;    // where backward writes; -1: not wanted
  std::vector<int> gradient_parts;  // of top 0's gradient, which backward adds as it reads them
};

// The arguments of the layer's functions. Filled by Plan::bind().
struct NodeArguments {
  Forward forward;
  std::vector<Forward> micro_batches;  // used instead of forward by a node in MicroBatches
  Backward backward;
  // For each parameter: its diff is cleared before a pass (Plan::cleared), or an earlier step of
  // the same pass wrote it. Net::backward() sets backward.accumulate by this.
  std::vector<bool> accumulate;
};

struct PlanNode : Node {
  int folding =
      -1;  // index into Plan::foldings: the source of its parameters; -1: they are the net's
  NodeEdges edges;
  NodeShapes shapes;

  // The arguments and results of the layer's preparation.
  Preparation preparation;
  Prepared prepared;
  std::vector<std::string> chosen;  // names of the implementations chosen for its kernels
  BackwardReads reads;              // those of prepared, or of its LayerTraits
  bool is_view = false;             // as its LayerTraits say, for passes
  std::vector<TensorSpec> saved;    // those of Layer::infer(), then those of prepared

  // Before its backward; from choose_recomputed().
  std::vector<Recomputation> recomputations;

  // From plan_memory().
  NodeStorages storages;
  std::vector<DiffSum> diff_sums;  // of tops: before backward; of bottoms: what to sum after it
  int side_stream = 0;             // where the gradients of its parameters are computed
  bool joins = false;              // its forward waits for the side streams

  NodeArguments arguments;
};

struct FusePattern;  // net/passes/fuse_patterns.h

struct PlanOptions {
  DType dtype = DType::f32;
  Precision precision = Precision::fp32;
  bool backward = false;
  bool keep_blobs = false, fuse = true, format = true, reuse_memory = true, seed_outputs = false;
  bool pack = true;        // kernels may ask for copies of weights in a form of their own; see fuse
  bool row_major = false;  // parameters too
  bool row_major_parameters = false;
  bool rounds = true;  // see Preparation
  // Gradients of parameters may be computed concurrently with those of the blobs: their inputs then
  // live until the end of the pass. Profitable if kernels are small.
  bool overlap = false;
  // Size of the processor's cache, for choose_micro_batches(); 0: no micro-batches.
  size_t cache_bytes = 0;
  Recompute recompute = Recompute::off;                // needs reuse_memory; not with overlap
  bool all_parameter_diffs = false;                    // also those with lr_mult 0 (force_backward)
  double loss_share = 1;                               // see Net::loss_share()
  double sum_share = 1;                                // the same of losses that are sums
  bool shares_batches = false;                         // ranks share each batch
  const std::vector<FusePattern>* patterns = nullptr;  // null: fuse_patterns()
};

// The weights of a rank's part of a loss, and of its gradient, in those of all ranks.
struct LossShares {
  double loss = 1, gradient = 1;
  bool count = false;  // the layer's sum is divided by the count of all ranks
};

// Nodes that run for some samples at a time, one after the other, then for the next samples: what
// passes between them stays in the processor's cache. Filled by choose_micro_batches().
struct MicroBatches {
  int first = 0, last = -1;        // nodes
  int64_t samples = 0, parts = 1;  // of each; how many
  bool has(int node) const { return node >= first && node <= last; }
};

class Plan {
 public:
  // Runs the passes over a copy of the graph. Parameters whose tensors exist keep their formats.
  Plan(Context& context, const Graph& graph, const PlanOptions& options);

  PlanOptions options;
  std::vector<PlanNode> nodes;  // in the order forward runs them; backward runs them in reverse
  size_t host_nodes = 0;        // see count_host_nodes()
  int early_node = -1;          // see Net::early_parameters()
  std::vector<PlanValue> values;
  std::vector<int> outputs;  // values, as Graph::outputs
  std::vector<std::optional<Format>> parameter_formats;
  std::vector<Folding> foldings;
  std::vector<std::shared_ptr<FoldedWeights>> folded;  // one per folding, from bind() on
  std::set<int> cleared;  // parameters whose diffs are cleared before a pass, as layers add to them
  MicroBatches micro_batches;
  std::vector<Storage> storages;
  size_t arena_bytes = 0, persistent_bytes = 0;
  size_t blob_bytes = 0;       // of the arena, if kernels needed no workspace
  size_t workspace_bytes = 0;  // maximum over all steps
  std::vector<int>
      side_storages;  // side-stream workspaces, one per side stream; empty without overlap

  // The net's precision, unless the layer overrides it.
  Precision precision_of(const Node& node) const;

  // Steps: forward of node i is step i, backward of node i is step 2 * nodes - 1 - i.
  int step_count() const { return 2 * static_cast<int>(nodes.size()); }
  int forward_step(int node) const { return node; }
  int backward_step(int node) const { return step_count() - 1 - node; }

  // After the forward of a dynamic node: gives the steps after it the shapes that it produced.
  // False when these are the last pass's.
  bool apply_dynamic_shapes(Context& context, PlanNode& node,
                            const std::vector<Parameter>& parameters);

  // Layer::loss_parts() for the bottoms that the node has.
  LossParts loss_parts(const PlanNode& node) const;
  // The weights of the loss with this value.
  LossShares loss_shares(const PlanValue& value) const;
  // The layer's count (Layer::loss_count).
  Tensor loss_count(const PlanValue& value) const;

  // Sets host_nodes: nodes up to the last one that works on the host.
  void count_host_nodes();

  // Folded weights are computed before a pass, which uses that many bytes of the arena.
  size_t folding_bytes() const;
  // Bytes of the folded weights, and of those that the store does not have yet.
  size_t folded_bytes() const;
  bool packs() const;  // whether some are in a form of a kernel's own
  size_t new_folded_bytes(FoldedStore& store) const;
  // Takes them from the store, which has those that other plans use.
  void take_folded(Context& context, FoldedStore& store);
  // Whether all are those of this version of the parameters; writes the ones that are not.
  bool has_folded(uint64_t version) const;
  void write_folded(Context& context, const std::vector<Parameter>& parameters, uint64_t version);

  // Its forward pass as a CUDA graph (net/forward_replay.h).
  struct Recording {
    Capture graph;
    bool warm = false;        // a pass has run as it is
    uint64_t generation = 0;  // Plan::generation when it was recorded
  };
  Recording recording;
  // Changes when memory moves or kernels change, which invalidates the recording.
  uint64_t generation = 0;

  // Binds tensors to every argument list. Called again when the arena has moved.
  void bind(Context& context, const std::shared_ptr<Buffer>& arena,
            const std::vector<Parameter>& parameters);
  const Buffer* bound() const { return bound_; }
  Tensor value(int id) const;
  Tensor diff(int id) const;
  Tensor seed(int id) const;
  // The shape of two values per channel of a node's first top.
  Shape pairs_of_channels(const PlanNode& node) const;

  // The shape of a value as this node sees it: of a micro-batch, or of the whole batch.
  Shape shape_in(int node, int value) const;

  // A readable listing: the passes, each step with its inputs, outputs and kernels, memory by kind.
  std::string dump(const Graph& graph) const;

 private:
  Tensor tensor(int storage, const Shape& shape, DType dtype, const Format& format) const;
  Tensor tensor(int storage, const PlanValue& value) const;
  void fill_seeds(Context& context);
  void bind(PlanNode& node, const std::vector<Parameter>& parameters);
  void bind_micro_batches(int node);
  void bind_recomputed(PlanNode& node);
  void mark_dynamic_shapes();
  bool update_shapes(Context& context, PlanNode& node);
  bool enlarge_tops(Context& context, PlanNode& node, const std::vector<Parameter>& parameters);
  bool grow_storage(Context& context, PlanNode& node);
  bool grow_storage(Context& context, int storage, size_t bytes);

  std::shared_ptr<Buffer> arena_, persistent_;
  const Buffer* bound_ = nullptr;
};

// --- passes, in this order; one file each in passes/ ---
// Multiplies BatchNorm and Scale into the layers before them where no gradient is computed. Part of
// fuse.
void fold_layers(Context& context, Plan& plan, const std::vector<Parameter>& parameters);
// Replaces groups of layers by fused ones, as its table of patterns says.
void fuse_layers(Context& context, Plan& plan);
// Chooses the order and the real type of every value and inserts Reorder nodes at the borders.
void choose_formats(Plan& plan);
// Chooses what passes along edges in addition to blobs and gradients (layers/edge.h). Part of fuse.
void choose_edges(Context& context, Plan& plan);
// Chooses the nodes that run for some samples at a time.
void choose_micro_batches(Plan& plan, size_t cache_bytes);
// Lets every node create its kernels and choose the formats of its parameters, and decides which
// nodes' backward runs.
void prepare_nodes(Context& context, Plan& plan, const std::vector<Parameter>& parameters);
// A single node, with the shapes in its preparation.
void prepare_node(Context& context, Plan& plan, PlanNode& node);
// Chooses the values that are recomputed for backward, and of these the ones that forward does not
// write at all.
void choose_recomputed(Plan& plan);
// Assigns memory to every tensor: aliases, lifetimes, offsets.
void plan_memory(Plan& plan);

// The readers of each value: pairs of node and bottom, in file order.
using Readers = std::vector<std::vector<std::pair<int, int>>>;
Readers readers_of(const Plan& plan);

// The only reader of the node's only top, if nothing else needs that value; -1 otherwise.
int sole_reader(const Plan& plan, const Readers& readers, int node);
// Removes these nodes, after a pass has put others in their place.
void remove_nodes(Plan& plan, const std::vector<bool>& removed);

// The steps that read a value; those of backward are -1 if there is none.
struct Reads {
  int last_forward = -1, first_backward = -1, last_backward = -1;
  int last() const { return std::max(last_forward, last_backward); }
};
Reads reads_of(const Plan& plan, const Readers& readers, int value);

}  // namespace crema
