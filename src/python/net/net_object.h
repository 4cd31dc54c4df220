// NetObject: implements Python's Net. It runs a net, whole or in part, as Caffe's Net does, and
// shows its blobs. Layers and blobs are counted as Caffe counts them, with the Split layers that
// net/graph/splits.h inserts.
//
// A solver makes one for each of its nets, with itself as the owner:
//   auto lock = std::make_shared<NetLock>();       // one for all nets of a solver
//   auto net = std::make_shared<NetObject>(solver /* shared_ptr */, solver->net(), lock, &passes);
// where `passes` is the solver's own count of forward passes of this net: a forward() from Python
// takes the next one. Around everything that the solver then does with its nets (step, solve,
// snapshot, restore):
//   const NetLock::Hold hold(lock);               // with the interpreter's lock held
//   net->write_back();                             // of each net: what the program has changed
//   const ReleaseGil release;           // and read_back() in the end
// Nets run planned until the program asks for a blob between input and output. Then the blobs of
// the last pass are computed again: with the current weights in a solver's net, and in a standalone
// net with those of that pass, so that it shows the same as a net that had kept them
// (net_look.cpp).
#pragma once

#include <pybind11/pybind11.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/net.h"
#include "net/plan/plan.h"
#include "python/net/blob_object.h"
#include "python/net/net_lock.h"
#include "python/net/net_map.h"

namespace crema::python {

// Options of a Python Net.
struct NetFormat {
  int phase = TEST;
  int level = 0;
  std::vector<std::string> stages;
  std::string weights;    // files to load, separated by commas; "": none
  bool planned = false;   // nothing between inputs and outputs can be seen
  std::string precision;  // "": fp32, or with planned what the device computes in
};

// How ReLUs treat a gradient: mask it by the values that were positive (the derivative), rectify it
// (deconvolution: Zeiler & Fergus 2014), or both (guided backpropagation: Springenberg et al.
// 2015).
enum class ReLURule { derivative, deconv, guided };

class NetObject : public std::enable_shared_from_this<NetObject> {
 public:
  // owner keeps the net and its context alive. passes: the owner's count of forward passes, which
  // must live as long as the owner; null: this object counts.
  NetObject(std::shared_ptr<void> owner, Net& net, std::shared_ptr<NetLock> lock,
            uint64_t* passes = nullptr);
  NetObject(const NetObject&) = delete;
  ~NetObject();
  // A standalone net on the module's device (mode.h). Error with file:line:column.
  static std::shared_ptr<NetObject> open(const std::string& path, const NetFormat& format);

  Net& net() { return net_; }
  // Only inputs and outputs can be seen, for as long as it lives.
  bool planned() const { return planned_; }
  // Whether every blob has its own memory now.
  bool keeps() const { return net_.options().keep_blobs; }
  const std::shared_ptr<NetLock>& lock() const { return lock_; }
  const NetMap& map() const { return map_; }
  int layers() const { return static_cast<int>(map_.layers.size()); }

  // Layers first to last, both included. All of these are called with the interpreter's lock held and
  // release it while they compute. Returns the weighted sum of the losses of these layers.
  double forward(int first, int last);
  // Layers first down to last. Adds to the gradients of parameters, as in Caffe.
  void backward(int first, int last, ReLURule rule = ReLURule::derivative);
  void clear_param_diffs();
  // Gives the net the shapes that inputs were reshaped to. Error when a layer cannot take them: then
  // all keep their shapes.
  void reshape();
  void load(const std::string& path);
  void save(const std::string& path, bool hdf5);
  // Layers of the same name use the other net's parameters from now on. Their memory lives as long as
  // either net.
  void share_with(const std::shared_ptr<NetObject>& other);
  // layer "": the first, which must then be a MemoryData layer.
  void set_input_arrays(const pybind11::handle& data, const pybind11::handle& labels,
                        const std::string& layer);

  // Called with a layer's index before and after it runs.
  enum Moment { before_forward, after_forward, before_backward, after_backward };
  void add_callback(Moment moment, pybind11::function callback);

  // Copies the program's changes in arrays that are copies into the net, and into the weights that
  // it shares with others. Each run begins with it.
  void write_back();
  // On a CPU: updates arrays that are copies with the solver's weights. (On a GPU that happens when
  // .data is read again, as in Caffe.)
  void read_back();

  // By index into map().blobs.
  Shape blob_shape(int blob);
  pybind11::array blob_data(int blob);
  pybind11::array blob_diff(int blob);
  void reshape_blob(int blob, const Shape& shape);
  Tensor blob_tensor(int blob, bool diff);
  // By index into net().parameters(); `shape` is what the layer sees it as.
  pybind11::array parameter_data(int parameter, const Shape& shape);
  pybind11::array parameter_diff(int parameter, const Shape& shape);
  Tensor parameter_tensor(int parameter, bool diff);

 private:
  class Running;
  // The content of the top of an Input or DummyData layer. It outlives plans.
  struct Input {
    Tensor memory;                     // of nets whose blobs are row-major: the blob's own
    std::unique_ptr<LoneBlob> staged;  // of others: set in the net before each pass
    std::vector<float> set;            // what it was set to last; empty: nothing yet
    std::optional<Shape> wanted;       // a shape for the next reshape()
  };
  enum Kind { kData, kDiff, kParameter, kParameterDiff };
  using Key = std::pair<Kind, int>;

  bool rows() const { return net_.options().row_major; }
  bool whole(int first, int last) const { return first == 0 && last == layers() - 1; }
  Plan& plan();
  void place_inputs(Plan& plan);
  void fill_constants(Plan& plan);
  void look_into(bool gradients);
  void look_at(int blob);
  bool gradients_can_be_planned(int blob) const;
  bool changed_since_pass() const;
  void backward_planned();
  void repeat_backward();
  void repeat_python_layers(bool on);
  void plan_again(const std::function<void()>& change);
  void repeat_last_pass();
  void swap_weights();
  void refresh_mirrors();
  void drop_mirrors();
  void need_blob(int blob);
  void need_gradients();
  bool is_staged(const NetMap::Blob& entry) const;
  LoneBlob& staged(int blob);
  const Node* stale_node(int first, int last) const;
  void apply_reshapes(int first, int last);
  void set_inputs();
  void before_run(int first, int last, bool forward);
  uint64_t next_pass(int first, int last);
  void run_forward(uint64_t pass, int first, int last);
  void run_backward(int first, int last, ReLURule rule);
  bool rectify(const PlanNode& node, ReLURule rule);
  void call(Moment moment, int layer);
  double loss(int first, int last);
  void enter_forward(int first, int last);
  void leave_forward(int first, int last);
  void enter_backward(int first, int last);
  void leave_backward(int first, int last);
  std::vector<int> diffs_from_outside(int first, int last);
  Tensor tensor(const Key& key);
  Tensor lend(const Key& key);
  void join(const std::shared_ptr<NetLock>& lock);
  void write_back_weights();
  void write_back_others();
  void weights_changed();
  Tensor value_tensor(int blob) { return plan().value(map_.blobs[blob].versions.back()); }
  Tensor diff_tensor(int blob);
  pybind11::array show(const Key& key, const Tensor& tensor);
  pybind11::array zeros(const Key& key, const Shape& shape);

  std::shared_ptr<void> owner_;
  Net& net_;
  std::shared_ptr<NetLock> lock_;
  uint64_t own_passes_ = 0, *passes_;
  uint64_t partial_passes_ = 0;
  bool planned_ = false;  // and stays so
  // A standalone net that is planned until the program looks into it. Until then the program sees
  // copies.
  bool lazy_ = false;
  int looks_ = 0;          // how many blobs the plan keeps for the program
  bool has_pass_ = false;  // a lazy net's last pass can be repeated
  // Whole backward passes of a lazy net can be planned, and be repeated: whether one has followed
  // the last pass, and the gradients that it began with, by value.
  bool plans_gradients_ = false, went_backward_ = false;
  std::map<int, std::vector<float>> seeds_;
  // The old values of parameters that changed since then.
  std::map<int, std::vector<float>> weights_of_last_pass_;
  bool running_ = false;
  // The program has an array that is a parameter's own memory, and may write into it at any time.
  bool weights_shown_ = false;
  // Other libraries may write into the net's GPU memory, on their own streams.
  bool lent_ = false, lent_weights_ = false;
  NetMap map_;
  uint64_t generation_ = ~uint64_t{0};  // of the net, when inputs were placed last
  std::vector<int> node_of_;            // for each layer the plan's node; -1: a Split
  std::map<int, Input> inputs_;         // by value
  std::vector<pybind11::function> callbacks_[4];
  std::map<Key, Mirror> mirrors_;  // of tensors that are not plain
  // Placeholders for gradients that the net does not compute.
  std::map<Key, std::shared_ptr<std::vector<float>>> zeros_;
};

// Its tops are filled by the program, or once for all passes.
bool is_filled_outside(const Node& node);

}  // namespace crema::python
