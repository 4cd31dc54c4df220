// The arguments of Layer's functions: the interface between a layer and the plan.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/communicator.h"
#include "layers/edge.h"
#include "layers/layer_traits.h"
#include "tensor/precision.h"
#include "tensor/tensor.h"

namespace crema {

class FillerParameter;

// How many blobs a layer takes; maximum = -1: no limit.
struct Arity {
  int minimum = 1;
  int maximum = 1;
};

// A tensor that a layer requests from the planner. dtype none: the net's real type (float32, or
// float64 in gradient tests).
struct TensorSpec {
  Shape shape;
  std::optional<DType> dtype;
  // Zero-initialized and used by this layer only until the plan ends: its values persist across
  // passes until the layer changes them.
  bool persistent = false;
};

struct Inference {
  std::vector<Shape> tops;
  // Written by forward, read by the backward that follows (masks, statistics).
  std::vector<TensorSpec> saved;
};

// How the loss of a batch follows from those of its parts, if ranks share the batch: each rank
// computes the loss of its part and the gradient of that.
enum class PartsRule {
  mean,     // the mean over the parts, weighted with their samples
  sum,      // their sum
  counted,  // the mean over the parts, weighted with what each counts (Layer::loss_count)
  cannot,   // none of these: each part would need the others
};
struct LossParts {
  PartsRule loss = PartsRule::cannot, gradient = PartsRule::cannot;
  const char* why = nullptr;  // why `cannot`, and the remedy; null: not a loss
  static LossParts all(PartsRule parts) { return {parts, parts}; }
  static LossParts none(const char* why) { return {PartsRule::cannot, PartsRule::cannot, why}; }
  bool combine() const { return loss != PartsRule::cannot && gradient != PartsRule::cannot; }
};

// A blob that a layer owns: learned, or measured (statistics).
struct ParameterSpec {
  Shape shape;
  const FillerParameter* filler;  // from the layer's message or a default: outlives the layer
  bool learned = true;            // false: no gradient, no update (running statistics)
};

// Known once a plan's shapes, formats and gradients are decided.
struct Preparation {
  std::vector<Shape> bottoms, tops;
  std::vector<Order> bottom_orders, top_orders;
  std::vector<int64_t> bottom_channels;  // in memory, padded as padded_channels() says; or 0
  std::vector<bool> bottom_needs_diff;
  std::vector<bool> parameter_needs_diff;
  bool backward = false;     // false: forward only
  DType dtype = DType::f32;  // for parameters, their gradients, `saved`: f32 or f64
  DType storage =
      DType::f32;  // type of bottoms, tops and their gradients, from LayerTraits::half_rule
  Precision precision = Precision::fp32;
  Edge bottom_edge, top_edge;  // order of bottom 0 and of top 0: requested by the plan
  // Formats of parameters that another net already owns; none: the layer may choose.
  std::vector<std::optional<Format>> parameter_formats;
  // The plan does what Prepared::packed asks for, and copies parameter 0 if the layer reads it in
  // another format than parameter_formats says.
  bool packs_weights = false;
  // Where layers find out themselves how to round (FakeQuantize, params_follow), they do; otherwise they
  // only measure.
  bool rounds = true;
};

// What a layer keeps for one plan: kernels, sizes, and what one pass leaves for the next. A layer
// that keeps any derives from this, creates it in prepare() and gets it back with each pass
// (state_of()). It belongs to the plan's node: several plans, each in its own thread, can run one
// layer.
struct LayerState {
  virtual ~LayerState() = default;
};

// The state of a layer whose tops' sizes depend on the data (LayerTraits::dynamic).
struct DynamicTops : LayerState {
  std::vector<Shape> tops;  // that the last forward filled, from the front of their memory
};

struct Prepared {
  std::vector<Format> parameter_formats;  // empty: all row-major
  size_t workspace = 0;                   // bytes of scratch memory for forward and backward
  // Parameters that forward and backward read in the storage type; empty: none. Their gradients are
  // float32 all the same.
  std::vector<bool> half_parameters;
  // The part of the request that the kernels will do, because it is faster: statistics and gradient
  // parts of top 0; affine of bottom 0.
  Edge bottom_edge, top_edge;
  // Backward accumulates into its parameters' gradients: clearing these before a pass is faster
  // than having the first writer overwrite them.
  bool adds_gradients = false;
  std::vector<TensorSpec> saved;       // in addition to those of infer(), after them
  std::optional<BackwardReads> reads;  // none: those of LayerTraits
  std::unique_ptr<LayerState> state;   // null: the layer keeps nothing
  // Forward reads a copy of parameter 0 that pack() computes from its row-major values.
  struct Packed {
    std::string form;  // whatever bytes and values depend on, but for the shape
    size_t bytes = 0;  // 0: it reads the parameter itself
    std::function<void(Context&, const Tensor& rows, const Tensor& packed)> pack;
  };
  Packed packed;

  // Creates the state.
  template <typename State, typename... Arguments>
  State& make_state(Arguments&&... arguments) {
    state = std::make_unique<State>(std::forward<Arguments>(arguments)...);
    return static_cast<State&>(*state);
  }
};

struct Forward {
  std::vector<Tensor> bottom, top, parameters, saved;
  Tensor workspace;             // u8
  LayerState* state = nullptr;  // Prepared::state
  // To be written: statistics if Prepared::top_edge has them; affine instead of top 0, which is
  // then empty.
  EdgeTensors top_edge;
  // One per bottom, or empty if there are none. If that of bottom 0 has an affine, bottom[0] is the
  // x that scale and shift apply to.
  std::vector<EdgeTensors> bottom_edges;
  const EdgeTensors& bottom_edge(size_t bottom) const {
    static const EdgeTensors none;
    return bottom < bottom_edges.size() ? bottom_edges[bottom] : none;
  }
  // Index of this forward pass of this net: data position and random numbers depend on it. In a
  // pass that a CUDA graph replays, kernels read it from device memory instead.
  uint64_t pass = 0;
  const uint64_t* live_pass = nullptr;
  // If ranks share a batch: this one's part. Random numbers of a sample depend on its position in
  // the whole batch. all 0: the batch is not shared.
  BatchShare share;
};

struct Backward {
  std::vector<Tensor> bottom, top;  // data; empty unless BackwardReads ask for it
  std::vector<Tensor> top_diff;     // empty: that top gets no gradient
  EdgeTensors top_edge;             // gradient parts
  std::vector<Tensor> bottom_diff;  // to be overwritten; empty: not needed
  EdgeTensors bottom_edge;          // of bottom 0: affine, as in Forward
  std::vector<Tensor> parameters;
  std::vector<Tensor> parameter_diff;  // empty: not needed
  std::vector<char> accumulate;        // per parameter: add to the diff instead of overwriting it
  // Per parameter: an earlier step of this pass contributes to the diff, perhaps still running on a
  // side stream. Whatever adds to it runs there, too.
  std::vector<char> begun;
  std::vector<Tensor> saved;
  Tensor workspace;
  LayerState* state = nullptr;  // Prepared::state
  // For work handed to Context::on_side_stream(), gradients of parameters: the stream and its
  // workspace.
  int side_stream = 0;
  Tensor side_workspace;
  uint64_t pass = 0;  // index of the forward pass this belongs to
  const uint64_t* live_pass = nullptr;
  BatchShare share;  // as in Forward
};

// The state that the layer's own prepare() made, of that type: auto& s = state_of<State>(pass).
template <typename State, typename Pass>
State& state_of(const Pass& pass) {
  return static_cast<State&>(*pass.state);
}

}  // namespace crema
