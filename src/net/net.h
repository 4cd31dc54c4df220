// Net: a prototxt made ready to run on one device. Owns the layers, the plan and (unless it shares
// another net's) parameters.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "net/graph.h"
#include "net/memory_use.h"

namespace crema {

class ArenaPool;  // net/arena.h
class Plan;       // net/plan.h
struct PlanNode;
struct PlanOptions;

struct NetOptions {
  DType dtype = DType::f32;
  Precision precision = Precision::fp32;  // 16 bits: on a GPU, with dtype float32
  // Phase, level, stages; see net/filter.h for how the solver and the file's own state combine.
  NetState state;
  // Every blob keeps its own memory and nothing is fused: debug_info, extraction, goldens. Off: the
  // planner reuses memory.
  bool keep_blobs = false;
  // Passes, each of which can be switched off for debugging; see PlanOptions.
  bool fuse = true, format = true, reuse_memory = true, overlap = true;
  // cheap: all, where the net would not fit otherwise.
  Recompute recompute = Recompute::cheap;
  // Make outputs that carry no loss take a gradient from output_diff() (gradient tests, goldens).
  bool seed_outputs = false;
  // Gradients in phase TEST too.
  bool backward = false;
  // The net whose parameters this one uses, by layer name (a test net of a solver); it must outlive
  // this one.
  class Net* share = nullptr;
  // Activation memory shared with other nets that never run at the same time; none: its own.
  std::shared_ptr<ArenaPool> arena;
  // Memory as large as the parameters' that a solver is going to keep beside them: counted when the
  // net is held against the memory there is.
  int histories = 0;
  // Layers whose blobs do not learn, as if lr_mult were 0; none: all do.
  std::function<bool(const std::string& layer)> frozen;
  // Folder of the prototxt (relative paths) and the position of a layer of the unfiltered file,
  // "net.prototxt:12:1".
  std::string folder;
  std::function<std::string(int layer)> where;
};

class Net {
 public:
  // `net` must be upgraded (net/prototxt/upgrade.h); layers that options.state excludes are left out. Logs
  // what Caffe logs. Error, before any of it is taken, when the net needs more memory than there is
  // or than the context allows.
  Net(Context& context, const NetParameter& net, NetOptions options);
  ~Net();
  Net(const Net&) = delete;

  const std::string& name() const { return graph_.net.name(); }
  Context& context() const { return context_; }
  const Graph& graph() const { return graph_; }
  bool training() const { return options_.state.phase() == TRAIN; }
  const NetOptions& options() const { return options_; }

  // One forward pass. `pass` numbers the passes of this net from 0: data position and random
  // numbers depend on it.
  void forward(uint64_t pass);
  // The same in two parts: what works on the host (sources) with all that comes before it, and the
  // rest, which a CUDA graph can record once set_live_pass() has said where the pass number lies.
  void forward_sources(uint64_t pass);
  // beside: work on the GPU that needs nothing of this pass, and of it only backward needs.
  // then_backward: what the last layer does aside is waited for at the end of backward().
  using Beside = std::function<void()>;
  void forward_rest(const Beside& beside = {}, bool then_backward = false);
  // Whether forward_sources() has work to do.
  bool works_on_host();
  void set_live_pass(const uint64_t* pass);
  // Whether shapes depend on data (Layer::dynamic): then no CUDA graph can repeat a pass.
  bool dynamic() const;
  // Changes when a plan is made or moved in memory: what was recorded before is void.
  uint64_t generation() const { return generation_; }
  // Sum of loss_weight * top of the last forward; waits for the device. Error when a label was out
  // of range.
  double loss();
  // Seconds that the layers' forward passes so far have waited for data.
  double waited() const;
  // Error when a layer of the last forward noted a mistake (a label out of range); waits for the
  // device.
  void check();
  // The parts of the loss, each with the gradient it starts from (empty without backward).
  struct Loss {
    double weight;
    Tensor value, seed;
  };
  std::vector<Loss> losses();
  // Gradients of the last forward. accumulate: add to the parameters' diffs (iter_size) instead of
  // overwriting them.
  // early: queued aside once the gradients of early_parameters() are, whose values nobody reads any
  // more in this pass.
  void backward(bool accumulate = false, const Beside& beside = {}, const Beside& early = {});
  // Those of the node that has the most, where backward runs several things at a time; else none.
  std::vector<int> early_parameters();
  // Those whose diffs have to be zero when backward(false) begins, because layers add to them. It
  // sees to that itself, but whoever reads them last can, and says so.
  const std::set<int>& cleared_parameters();
  void diffs_cleared() { diffs_are_clear_ = true; }
  // Now, unless they are.
  void clear_diffs();

  // The net's results: blobs that no layer reads, in Caffe's order, each with its loss weight.
  struct Output {
    std::string blob;
    float loss_weight;
    Tensor value;
  };
  std::vector<Output> outputs();
  // Seeds for backward, with NetOptions::seed_outputs; one for each of outputs(), empty where no
  // gradient flows.
  std::vector<Tensor> output_diffs();

  // The last version of a blob; Error with near names when there is none. Content is sure only with
  // keep_blobs.
  Tensor blob(const std::string& name);
  Tensor diff(const std::string& name);  // empty when it has none
  bool has_blob(const std::string& name) const;
  // Values of an Input's blob, in Caffe's order: until other ones are set. Converted here to what
  // the net computes with, so that no pass has to.
  void set_input(const std::string& name, const float* values);
  // The blob as its source layer makes it, in the plan's order and type, before any layer that
  // works in place on it. A gradient is empty when none flows that far.
  Tensor input(const std::string& name);
  Tensor input_diff(const std::string& name);

  // Parameters in Caffe's order (owners only). Their tensors stay the same for the life of the net.
  // Who writes their data calls parameters_changed() afterwards, on the net that owns them.
  std::vector<Parameter>& parameters() { return graph_.parameters; }
  // All parameters' memory, diffs' memory: one arena each, laid out alike, element type dtype.
  void parameters_changed() { halves_are_old_ = true; }
  Tensor parameter_arena() const { return parameter_data_; }
  Tensor diff_arena() const { return parameter_diff_; }
  // Copies of the parameters in 16 bits, laid out alike; empty in nets that do not compute so.
  Tensor half_arena() const { return parameter_half_; }
  // Offset of a parameter in the arenas, in elements.
  int64_t parameter_offset(int index) const { return parameter_offsets_[index]; }

  // Changes the shape of an Input blob; the plan is made anew at the next forward.
  void reshape(const std::string& blob, const Shape& shape);

  // Of this net alone; without history.
  MemoryKinds memory();
  std::vector<LayerMemory> memory_by_layer();
  MemoryPeak memory_peak();
  // What the plan's passes decided, step by step (-dump_plan).
  std::string dump_plan();

  // Runs layer by layer with a callback around each step: `time` without -train_step.
  struct StepInfo {
    const PlanNode* node;
    bool backward;
  };
  void set_observer(std::function<void(const StepInfo&, bool begin)> observer);

 private:
  void share_parameters();
  size_t bytes_of_blobs() const;
  void make_plan();
  void plan_with(const PlanOptions& options);
  bool fits();
  bool release_resident();
  Plan& planned();
  void place_parameters();
  void allocate_parameters();
  size_t memory_to_come();
  void check_memory();
  void follow_sources(uint64_t pass);
  Plan& ready();  // the plan, bound to memory
  void forward(PlanNode& node);
  void run(const PlanNode& node, bool backward, const std::function<void()>& body);
  int find_value(const std::string& name);         // the last version; -1: none
  int find_source(const std::string& name) const;  // the first version

  Context& context_;
  NetOptions options_;
  Graph graph_;
  std::unique_ptr<Plan> plan_;
  void renew_halves();
  Tensor parameter_data_, parameter_diff_, parameter_half_;
  bool halves_are_old_ = true, diffs_are_clear_ = false;
  const uint64_t* live_pass_ = nullptr;
  uint64_t generation_ = 0;
  std::vector<int64_t> parameter_offsets_;
  int64_t parameter_elements_ = 0;  // of the arenas
  std::function<void(const StepInfo&, bool)> observer_;
};

}  // namespace crema
