// Plan: a graph rewritten by the passes (passes/), with memory and arguments for every step: what a
// net runs.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "net/arena.h"
#include "net/graph.h"

namespace crema {

// A run of bytes in one of the plan's memories.
struct Storage {
  size_t bytes = 0;
  int first = -1, last = -1;  // steps it lives in; see Plan::step_count
  bool persistent = false;    // outside the arena: survives between passes
  bool workspace = false;     // of kernels, while a step runs
  size_t offset = 0;
  std::shared_ptr<Buffer> own;  // memory of its own: a pass needed more than was planned
};

struct PlanValue : Value {
  Format format() const { return {order, nullptr, channels}; }
  size_t bytes() const { return static_cast<size_t>(format().elements(shape)) * size_of(dtype); }
  bool again = false;      // not kept for backward but written once more
  bool folded = false;     // not written forward, and without `again` not backward either: who
                           // reads it takes what it is made from
  int storage = -1;        // of its content
  int diff_storage = -1;   // of its gradient: the first of the parts, where all are summed
  int again_storage = -1;  // of what is written again, in backward
  int seed_storage = -1;   // persistent; holds the loss weight: a part beside those of the readers
};

// Parts of a value's gradient, one from each reader, that are added up into the first of them.
struct DiffSum {
  int value = -1;
  std::vector<int> storages;
  std::vector<Tensor> parts;  // bound to memory
};

// A node whose tops are written once more before another one's backward.
struct Again {
  int node = -1;
  Forward arguments;  // bound to memory
};

struct PlanNode : Node {
  bool takes_relu = false, relu_taken = false;  // see Preparation
  float relu_factor = 1;
  int sums_reader = -1;          // the node that wants the sums of top 0
  std::vector<int> sums_makers;  // for each bottom the node that may give its sums; or -1
  // Its shapes change from pass to pass: a layer that it depends on is Layer::dynamic().
  bool follows = false;
  // In this pass it has nothing to compute: its tops are empty, or what they would be computed from
  // is. They are zero then, and so are its gradients.
  bool idle = false;
  bool dynamic = false;              // Layer::dynamic()
  std::vector<Shape> bottom_shapes;  // that it is bound to
  Preparation preparation;
  Prepared prepared;
  std::vector<std::string> served;  // names of the implementations that its kernels are
  BackwardReads reads;
  std::vector<TensorSpec> saved;
  std::vector<int> saved_storage;
  int sums_storage = -1;    // of top 0's channels, when prepared gives them
  int affine_storage = -1;  // in the place of top 0, when that is folded
  int forward_workspace = -1, backward_workspace = -1;  // storages
  std::vector<int> bottom_diff_storage;                 // where backward writes; -1: not wanted
  std::vector<DiffSum> diff_sums;                       // of bottoms: what to add up after backward
  std::vector<int> more_top_diff_storage;  // parts of the first top's gradient that backward adds
  std::vector<bool> accumulate;  // for each parameter: its diff is cleared before a pass (cleared),
                                 // or an earlier step of the same pass wrote it
  int aside_lane = 0;            // where the gradients of its parameters are computed
  std::vector<Again> again;      // before its backward
  Forward forward;               // arguments, bound to memory
  Backward backward_arguments;
};

struct PlanOptions {
  DType dtype = DType::f32;
  Precision precision = Precision::fp32;
  bool backward = false;
  bool keep_blobs = false, fuse = true, format = true, reuse_memory = true, seed_outputs = false;
  // Gradients of parameters may be computed beside those of the blobs: what they read lives until
  // the end of the pass. Worth its memory where kernels are small.
  bool overlap = false;
  Recompute recompute = Recompute::off;  // needs reuse_memory; not with overlap
  bool all_parameter_diffs = false;      // also those with lr_mult 0 (force_backward)
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
  std::set<int> cleared;  // parameters whose diffs are cleared before a pass, as layers add to them
  std::vector<Storage> storages;
  size_t arena_bytes = 0, persistent_bytes = 0;
  size_t blob_bytes = 0;       // of the arena, if kernels needed no workspace
  size_t workspace_bytes = 0;  // the most that a step needs
  std::vector<int>
      aside_storages;  // workspace of each lane of what runs aside; without overlap none

  // The net's, unless the layer says another one.
  Precision precision_of(const Node& node) const;

  // Steps: forward of node i is step i, backward of node i is step 2 * nodes - 1 - i.
  int step_count() const { return 2 * static_cast<int>(nodes.size()); }
  int forward_step(int node) const { return node; }
  int backward_step(int node) const { return step_count() - 1 - node; }

  // After the forward of a dynamic node: the steps after it run with the shapes that it gave. False
  // when those are the last pass's.
  bool take_shapes(Context& context, PlanNode& node, const std::vector<Parameter>& parameters);

  // Sets host_nodes: nodes up to the last that works on the host.
  void count_host_nodes();

  // Puts tensors into every argument list. Called again when the arena has moved.
  void bind(Context& context, const std::shared_ptr<Buffer>& arena,
            const std::vector<Parameter>& parameters);
  const Buffer* bound() const { return bound_; }
  Tensor value(int id) const;
  Tensor diff(int id) const;
  Tensor seed(int id) const;
  // Two numbers for each channel of a node's first top.
  Shape pairs_of_channels(const PlanNode& node) const;

  // For people: the passes, each step with what it reads, writes and runs on, the memory by kind.
  std::string dump(const Graph& graph) const;

 private:
  Tensor tensor(int storage, const Shape& shape, DType dtype, const Format& format) const;
  Tensor tensor(int storage, const PlanValue& value) const;
  void fill_seeds(Context& context);
  void bind(PlanNode& node, const std::vector<Parameter>& parameters);
  void bind_again(PlanNode& node);
  void mark_followers();
  bool follow(Context& context, PlanNode& node);
  bool make_room(Context& context, PlanNode& node);
  bool make_room(Context& context, int storage, size_t bytes);

  std::shared_ptr<Buffer> arena_, persistent_;
  const Buffer* bound_ = nullptr;
};

// --- passes, in this order; one file each in passes/ ---
// Joins layers into one kernel where an implementation of the joined type is registered.
void fuse_layers(Context& context, Plan& plan);
// Chooses the order and the real type of every value and puts Reorder nodes at the borders.
void choose_formats(Plan& plan);
// Lets readers take gradients through the ReLUs that made what they read, where they can. Part of
// fuse.
void hand_relus_on(Plan& plan);
// Finds who could have the sums of the channels that it reads from who makes them, where results
// need not repeat. Part of fuse.
void ask_for_sums(Context& context, Plan& plan);
// Lets every node make its kernels and choose the formats of its parameters, and decides whose
// backward runs.
void prepare_nodes(Context& context, Plan& plan, const std::vector<Parameter>& parameters);
// One of them, with the shapes in its preparation.
void prepare_node(Context& context, Plan& plan, PlanNode& node);
// Chooses the values that backward has written again, and of these those that forward does not
// write.
void choose_recomputed(Plan& plan);
// Gives every tensor its place: aliases, lifetimes, offsets.
void plan_memory(Plan& plan);

// Who reads a value: pairs of node and bottom, in file order.
using Readers = std::vector<std::vector<std::pair<int, int>>>;
Readers readers_of(const Plan& plan);

// The steps that read a value; those of backward are -1 where there is none.
struct Reads {
  int last_forward = -1, first_backward = -1, last_backward = -1;
  int last() const { return std::max(last_forward, last_backward); }
};
Reads reads_of(const Plan& plan, const Readers& readers, int value);

}  // namespace crema
