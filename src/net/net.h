// Net: a prototxt made ready to run on one device. Owns the layers, the plan and (unless it shares
// those of another net) the parameters.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "net/graph/graph.h"
#include "net/plan/memory_use.h"
#include "net/shared_weights.h"

namespace crema {

class ArenaPool;      // net/plan/arena.h
class ForwardReplay;  // net/forward_replay.h
class Plan;           // net/plan/plan.h
class Upload;         // device/staging.h
struct PlanNode;
struct PlanOptions;

struct NetOptions {
  DType dtype = DType::f32;
  Precision precision = Precision::fp32;  // 16 bits: on a GPU, with dtype float32
  // Phase, level, stages; see net/graph/filter.h for how the solver and the file's own state combine.
  NetState state;
  // Every blob keeps its own memory and nothing is fused: for debug_info, feature extraction,
  // goldens. Off: the planner reuses memory.
  bool keep_blobs = false;
  // Blobs and parameters are float32 in row-major order, as programs that look into Caffe's nets expect
  // them; kernels that would like another order are slower.
  bool row_major = false;
  // Passes, each of which can be switched off for debugging; see PlanOptions.
  bool fuse = true, format = true, reuse_memory = true, overlap = true;
  // On a CPU, plans without gradients run some layers for a few samples at a time, whose values stay
  // in the processor's cache.
  bool micro_batches = true;
  size_t cache_bytes = 0;  // which they are chosen for; 0: the processor's
  // Kernels may keep weights in a form of their own, which they compute whenever these change. Part
  // of fuse, for nets that own their parameters and plans without gradients.
  bool pack = true;
  // On a GPU, forward passes of plans without gradients, and a solver's iterations, are recorded as CUDA
  // graphs and replayed.
  bool capture = true;
  // cheap becomes all if the net would not fit otherwise.
  Recompute recompute = Recompute::cheap;
  // See Preparation::rounds.
  bool rounds = true;
  // Make outputs that carry no loss take a gradient from output_diffs() (gradient tests, goldens).
  bool seed_outputs = false;
  // Compute gradients in phase TEST too.
  bool backward = false;
  // Plan no gradients, whatever else requests them, until plan_gradients() or look_into(true).
  bool forward_only = false;
  // No batch of a source crosses the end of an epoch (Layer::read_whole_epochs), so the last one of
  // each may be smaller; plans of both sizes are kept. See check_whole_epochs() in net/records.h.
  bool whole_epochs = false;
  // The net whose parameters this one uses, matched by layer name (for a solver's test net). It
  // must outlive this one.
  class Net* share = nullptr;
  // A net of the same text in phase TEST: this one uses all of its parameters, and the two can run
  // in different threads at the same time. Only the constructor reads that net, which must not run
  // meanwhile. The parameters live as long as any net that uses them. Error if a layer changes its
  // parameters in a pass.
  const class Net* weights_of = nullptr;
  // The next call loads weights, so parameters are not filled: load_weights() fills those that its
  // file does not have.
  bool weights_follow = false;
  // Shapes of blobs of Input layers, in place of those in the text.
  std::vector<std::pair<std::string, Shape>> input_shapes;
  // Activation memory shared with other nets that never run at the same time; none: its own.
  std::shared_ptr<ArenaPool> arena;
  // How many arenas of the parameters' size a solver will allocate in addition: counted when the
  // net's memory is checked against what is available.
  int histories = 0;
  // Values whose content stays until the end of a pass, like that of an output; none: outputs only.
  std::function<std::vector<int>(const Graph&)> kept;
  // Layers to freeze, as if lr_mult were 0; none: all are trained.
  std::function<bool(const std::string& layer)> frozen;
  // The folder of the prototxt (for relative paths), and the position of a layer of the unfiltered
  // file, "net.prototxt:12:1".
  std::string folder;
  std::function<std::string(int layer)> where;
};

class Net {
 public:
  // `net` must be upgraded (net/prototxt/upgrade.h); layers that options.state excludes are left
  // out. Logs what Caffe logs. Error, before allocating anything, when the net needs more memory
  // than is free or than the context allows.
  Net(Context& context, const NetParameter& net, NetOptions options);
  ~Net();
  Net(const Net&) = delete;

  const std::string& name() const { return graph_.net.name(); }
  Context& context() const { return context_; }
  const Graph& graph() const { return graph_; }
  bool training() const { return options_.state.phase() == TRAIN; }
  const NetOptions& options() const { return options_; }

  // One forward pass. `pass` numbers this net's passes from 0: data position and random numbers
  // depend on it.
  void forward(uint64_t pass);
  // The same in two parts: layers that work on the host (sources) with everything before them, and
  // the rest, which a CUDA graph can record once set_live_pass() has set the location of the pass
  // number.
  void forward_sources(uint64_t pass);
  // side_work: GPU work to run concurrently on a side stream. It needs nothing of this pass, and only
  // backward needs its results. then_backward: backward() follows, and waits at its end for what
  // the last layer queued on side streams.
  using SideWork = std::function<void()>;
  void forward_rest(const SideWork& side_work = {}, bool then_backward = false);
  // Whether forward_sources() has work to do.
  bool works_on_host();
  void set_live_pass(const uint64_t* pass);
  // Whether shapes depend on data (Layer::dynamic): then no CUDA graph can replay a pass.
  bool dynamic() const;
  // Changes when the plan is rebuilt or moved in memory, which invalidates recorded graphs.
  uint64_t generation() const { return generation_; }
  // Sum of loss_weight * top of the last forward; waits for the device. Error when a label was out
  // of range.
  double loss();
  // Seconds that the layers' forward passes have waited for data so far.
  double waited() const;
  // For the layer with the longest wait: its name, and a setting that would help.
  std::string waiting_hint() const;
  // Error when a layer of the last forward recorded an error (a label out of range); waits for the
  // device.
  void check();
  // The parts of the loss, each with the gradient it starts from (empty without backward), which is
  // weight * share. The shares weight this rank's value and gradient in those of all ranks:
  // loss_share(), or 1 for a sum over samples that ranks divide. count: for a loss that ranks
  // divide and whose divisor is a count (Layer::loss_count).
  struct Loss {
    double weight, value_share, share;
    Tensor value, seed, count;
  };
  std::vector<Loss> losses();
  // With several ranks: this one's part of each batch; all 0: the sources have none.
  BatchShare share() const;
  // The samples of this rank's batches, as a share of those of all ranks.
  // Losses are means over samples, so the sums over the ranks of loss_share() * loss, and of the
  // gradients, are those of the whole batch. 1: one rank.
  double loss_share() const;
  // Computes the gradients of the last forward. accumulate: add to the parameters' diffs
  // (iter_size) instead of overwriting them.
  // early: queued on a side stream right after the gradients of early_parameters(); nothing reads
  // the values of these parameters any more in this pass.
  // after: called with the index of each node of the plan once its backward is queued.
  void backward(bool accumulate = false, const SideWork& side_work = {}, const SideWork& early = {},
                const std::function<void(int node)>& after = {});
  // Parts of a pass, for programs that look into a net: the layers from `first` to `last`, both
  // included, as indices into graph().net. Forward reads the results of earlier layers unchanged;
  // backward, which runs from `first` down to `last`, adds to the gradients of parameters. Error
  // without keep_blobs.
  void forward_layers(uint64_t pass, int first, int last);
  void backward_layers(int first, int last);
  // Called with a node of the plan instead of its backward; false: run the layer's own.
  using Instead = std::function<bool(const PlanNode&)>;
  // The same where some layers propagate gradients in another way (deconvolution of Zeiler & Fergus).
  void backward_layers(int first, int last, const Instead& instead);
  // From now on every blob keeps its own memory, and with `gradients` these are computed also in
  // phase TEST. rows: blobs and parameters are stored as by NetOptions::row_major. Creates a new
  // plan, so blobs have no content until the next pass.
  void look_into(bool gradients, bool rows = false);
  // From now on gradients are computed also in phase TEST, by a plan that shares memory. Those of
  // the net's inputs stay until the next backward pass. Creates a new plan, as look_into().
  void plan_gradients();
  // The content of this value stays until the end of a pass. Creates a new plan, as look_into().
  void keep_value(int value);
  // Whether layers round from now on (NetOptions::rounds). If that changes, creates a new plan, as look_into().
  void set_rounding(bool rounds);
  // Blobs in the order and the precision of another net's, for parameters that belong to that net
  // from now on. Creates a new plan, as look_into().
  void plan_like(const Net& other);
  // The plan, bound to memory.
  Plan& plan() { return ready(); }
  // For each parameter, the node after whose backward its gradient is final; -1: it has none.
  std::vector<int> final_nodes();
  // The parameters of the node with the most of them, if backward uses several streams; otherwise
  // none.
  std::vector<int> early_parameters();
  // The parameters whose diffs must be zero when backward(false) begins, because layers add to
  // them. backward() clears them itself unless their last reader already has and says so by
  // diffs_cleared().
  const std::set<int>& cleared_parameters();
  void diffs_cleared() { diffs_are_clear_ = true; }
  // Clears them now, unless they are clear.
  void clear_diffs();

  // The net's results: blobs that no layer reads, in Caffe's order, each with its loss weight.
  // parts: how the values of several ranks combine, as they are after the sums of losses. count: of
  // PartsRule::counted, as Layer::loss_count says.
  struct Output {
    std::string blob;
    float loss_weight;
    Tensor value;
    PartsRule parts = PartsRule::mean;
    Tensor count = {};
  };
  std::vector<Output> outputs();
  // Seeds for backward, with NetOptions::seed_outputs: one per element of outputs(), empty where no
  // gradient flows.
  std::vector<Tensor> output_diffs();

  // The last version of a blob; Error with similar names when there is none. The content is valid
  // only with keep_blobs.
  Tensor blob(const std::string& name);
  Tensor diff(const std::string& name);  // empty when it has none
  bool has_blob(const std::string& name) const;
  // Sets the values of an Input's blob, in Caffe's order, until they are set again. Converts them
  // here to the net's format, so that no pass has to.
  void set_input(const std::string& name, const float* values);
  // The blob as its source layer makes it, in the plan's order and type, before any in-place layer.
  // The gradient is empty when none flows that far.
  Tensor input(const std::string& name);
  Tensor input_diff(const std::string& name);

  // The state that layers, such as recurrent ones, pass to the next pass; zero in a new net, and
  // when the batch size changes.
  std::vector<Tensor> carried();
  void clear_carried();
  // Plans for the shapes of the sources in this pass. Error if they do not fit a layer, or need too
  // much memory.
  void plan_for(uint64_t pass);

  // Parameters in Caffe's order (owners only). Their tensors stay the same for the net's lifetime.
  // Code that writes their data calls parameters_changed() afterwards, on the net that owns them.
  std::vector<Parameter>& parameters() { return graph_.parameters; }
  void parameters_changed();
  // Fills what NetOptions::weights_follow left without values, but for what has been loaded: indices
  // of parameters(). Only the first call does anything.
  void fill_others(const std::set<int>& loaded);
  // The same if other threads may use them (NetOptions::weights_of): calls `work`, which writes their
  // data, while no net that uses them runs a pass.
  void change_parameters(const std::function<void()>& work);
  // A lock for reading their data outside a pass.
  SharedWeights::Reading read_parameters() { return weights_->read(); }
  // Their tensors are others now.
  void parameters_moved();
  // The solver's update has written them, and the copies in 16 bits.
  void parameters_updated() { ++weights_->version; }
  // All parameters' memory and all diffs' memory: one arena each with the same layout, element type
  // dtype.
  Tensor parameter_arena() const { return parameter_data_; }
  Tensor diff_arena() const { return parameter_diff_; }
  // 16-bit copies of the parameters in the same layout; empty in nets that do not compute in 16
  // bits.
  Tensor half_arena() const { return parameter_half_; }
  // Offset of a parameter in the arenas, in elements.
  int64_t parameter_offset(int index) const { return parameter_offsets_[index]; }

  // Changes the shape of an Input blob. The next forward makes a plan for it, unless the net has been
  // run on these shapes not long ago.
  void reshape(const std::string& blob, const Shape& shape);
  // The same for several inputs, whose old shapes would not match the others' new ones.
  void reshape(const std::vector<std::pair<std::string, Shape>>& shapes);
  // The same for a pass of the layers from `first` to `last`: other layers that the shapes concern become
  // stale (Node::stale). On an Error all shapes are as before.
  void reshape(const std::vector<std::pair<std::string, Shape>>& shapes, int first, int last);
  // The shapes of all values and which layers are stale, to go back to.
  struct Shapes {
    std::vector<Shape> values;
    std::vector<bool> stale;
  };
  Shapes shapes() const;
  void restore(const Shapes& shapes);

  // For this net only; without the solver's history.
  MemoryKinds memory();
  std::vector<LayerMemory> memory_by_layer();
  MemoryPeak memory_peak();
  // The decisions of the plan's passes, step by step (-dump_plan).
  std::string dump_plan();

  // Runs layer by layer with a callback around each step: `time` without -train_step.
  struct StepInfo {
    const PlanNode* node;
    bool backward;
  };
  void set_observer(std::function<void(const StepInfo&, bool begin)> observer);

 private:
  void share_parameters();
  void take_weights(const Net& other);
  void place_diffs();
  void backward(PlanNode& node, bool accumulate, const Instead& instead = {});
  void begin_pass(uint64_t pass);
  void run_sources(uint64_t pass);
  void forward_or_replay(uint64_t pass);
  void start_pass(uint64_t pass, PlanNode& node, const BatchShare& samples);
  void set_input_shape(const std::string& blob, const Shape& shape);
  static bool set_input_shape(LayerParameter& layer, const std::string& blob, const Shape& shape);
  size_t bytes_of_blobs() const;
  bool replays();
  void make_plan();
  void make_plan_that_fits();
  void plan_with(const PlanOptions& options);
  bool ranks_choose_alike();
  bool fits();
  bool release_resident();
  Plan& planned();
  void place_parameters();
  void allocate_parameters();
  void place_in_arena();
  void store_in_rows();
  size_t pending_bytes();
  void check_memory();
  void update_source_shapes(uint64_t pass);
  void update_source_shapes(uint64_t pass, int first, int last);
  std::vector<std::pair<int, Tensor>> input_values() const;
  std::vector<Shape> source_shapes() const;
  void set_plan_aside();
  bool take_earlier_plan();
  void drop_plans();
  // Copies are what is computed from the parameters: in 16 bits, and the plan's folded weights.
  // read_current_weights() renews them if they are not current, and locks the parameters for a pass.
  bool halves_are_current() const;
  bool copies_are_current();
  void refresh_halves();
  void refresh_copies();
  SharedWeights::Reading read_current_weights();
  // Calls `work`, a pass, while no other net changes the parameters.
  void with_weights(const std::function<void()>& work);
  uint64_t weights_version() const;
  Plan& ready();  // the plan, bound to memory
  void forward(PlanNode& node);
  void forward_micro_batches(Plan& plan);
  void run(const PlanNode& node, bool backward, const std::function<void()>& body);
  int find_value(const std::string& name);         // the last version; -1: none
  int find_source(const std::string& name) const;  // the first version

  Context& context_;
  NetOptions options_;
  Graph graph_;
  std::unique_ptr<Plan> plan_;
  std::vector<Shape> shapes_;  // the source shapes that plan_ was made for
  // Plans for earlier shapes, the one used last first.
  struct EarlierPlan {
    std::vector<Shape> shapes;
    std::unique_ptr<Plan> plan;
  };
  std::vector<EarlierPlan> earlier_plans_;
  Tensor parameter_data_, parameter_diff_, parameter_half_;
  std::shared_ptr<SharedWeights> weights_;
  bool diffs_are_clear_ = false;
  const uint64_t* live_pass_ = nullptr;
  std::unique_ptr<ForwardReplay> replay_;
  // How set_input() passes values to a GPU: the copy, and memory for them in Caffe's order.
  std::unique_ptr<Upload> upload_;
  Tensor uploaded_;
  uint64_t generation_ = 0;
  std::vector<int64_t> parameter_offsets_;
  std::set<int> unfilled_;          // parameters
  int64_t parameter_elements_ = 0;  // of the arenas
  std::function<void(const StepInfo&, bool)> observer_;
};

}  // namespace crema
