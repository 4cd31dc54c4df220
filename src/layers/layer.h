// Layer: one operation of a net. A class without template parameter, known only by its registered
// name; one file each. The net calls, in this order: open and setup once; infer and prepare for
// each set of bottom shapes; then forward and backward. A layer reports a mistake by throwing Error
// without naming itself: the net adds file:line:column and the layer's name.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/registry.h"
#include "device/context.h"
#include "tensor/precision.h"
#include "tensor/tensor.h"

namespace google::protobuf {
class Descriptor;
class Message;
}  // namespace google::protobuf

namespace crema {

class LayerParameter;
class FillerParameter;

// How many blobs a layer takes; most = -1: no limit.
struct Arity {
  int least = 1;
  int most = 1;
};

// Which orders (tensor/format.h) the bottoms and tops of three and more axes may come in.
enum class OrderRule {
  plain,                  // row-major only
  any,                    // any, the same for all of them
  prefers_channels_last,  // both, but channels-last is faster
};

// In which real type the bottoms and tops come when the net computes in 16 bits. Bottoms without a
// gradient (labels) and the tops of losses are never 16 bits wide.
enum class HalfRule {
  never,    // in float32
  follows,  // in the type of the first bottom, which must be differentiable
  prefers,  // in 16 bits
};

// A tensor that a layer asks the planner for. dtype none: the net's real type (float32, or float64
// in gradient tests).
struct TensorSpec {
  Shape shape;
  std::optional<DType> dtype;
  // Zero at the start, and nobody else's until the plan ends: what a layer notes there stays until
  // it takes it back.
  bool persistent = false;
};

struct Inference {
  std::vector<Shape> tops;
  std::vector<TensorSpec>
      saved;  // written by forward, read by the backward that follows (masks, statistics)
};

// A learned or measured blob that a layer owns.
struct ParameterSpec {
  Shape shape;
  const FillerParameter*
      filler;           // inside the layer's message or a default instance: outlives the layer
  bool learned = true;  // false: no gradient, no update (running statistics)
};

// What is known once shapes, formats and gradients of a plan are decided.
struct Preparation {
  std::vector<Shape> bottoms, tops;
  std::vector<Order> bottom_orders, top_orders;
  std::vector<int64_t> bottom_channels;  // in memory, where padded_channels() asked for more; or 0
  std::vector<bool> bottom_needs_diff;
  std::vector<bool> parameter_needs_diff;
  bool backward = false;       // false: forward only
  DType dtype = DType::f32;    // of parameters, their gradients and `saved`: float32 or float64
  DType storage = DType::f32;  // of bottoms, tops and their gradients, as half_rule() says
  Precision precision = Precision::fp32;
  // Backward gives the gradient of bottom 0 as it is before the ReLU that made it: zero where that
  // bottom is not positive. Only with can_take_relu().
  bool takes_relu = false;
  // With it: what the gradient is multiplied by besides (Layer::relu_factor()).
  float relu_factor = 1;
  // All gradients of top 0 are taken through the ReLU that ends this layer: backward leaves it out.
  // Only with ends_in_relu().
  bool relu_taken = false;
  // Whoever reads top 0 asks for the sums of its channels (Forward::top_sums). Only where results
  // need not repeat bit for bit.
  bool wants_sums = false;
  // Bottom 0 is relu(x * scale + shift) with one scale and shift a channel, of which forward may be
  // given x instead (Forward::bottom_affine). With wants_sums only.
  bool offers_affine = false;
  // Formats of parameters that another net already owns; none: the layer is free to choose.
  std::vector<std::optional<Format>> parameter_formats;
};

// Which data backward reads; the planner frees or overwrites the rest.
struct BackwardReads {
  bool bottom = true;
  bool top = true;
  bool only_first = false;  // of the bottoms

  bool bottom_at(size_t index) const { return bottom && (index == 0 || !only_first); }
};

struct Prepared {
  std::vector<Format> parameter_formats;  // empty: all plain
  size_t workspace = 0;                   // bytes that forward and backward may scribble on
  // Parameters that forward and backward read in the storage type; empty: none. Gradients are
  // written in float32 all the same.
  std::vector<bool> half_parameters;
  // The gradient of top 0 may come in up to so many parts (Backward::more_top_diff), for backward
  // to add as it reads them; the planner adds up what comes in more.
  int top_diff_parts = 1;
  // As wanted, forward writes Forward::top_sums.
  bool gives_sums = false;
  // As offered, forward can take Forward::bottom_affine, and is faster than who would write bottom
  // 0.
  bool takes_affine = false;
  // Then backward takes Backward::bottom_affine, too, and nobody has to write bottom 0.
  bool gradient_takes_affine = false;
  // Backward adds to its parameters' gradients: faster where these are cleared before a pass than
  // where the first to write one overwrites it.
  bool adds_gradients = false;
  std::vector<TensorSpec> saved;       // further ones, behind those of infer()
  std::optional<BackwardReads> reads;  // none: as Layer::reads() says
};

struct Forward {
  std::vector<Tensor> bottom, top, parameters, saved;
  Tensor workspace;  // u8
  // (2, channels), float32: sums over each channel and over their squares. Of top 0: to be written
  // where Prepared::gives_sums. Of each bottom: empty where nobody did.
  Tensor top_sums;
  std::vector<Tensor> bottom_sums;
  // (2, channels), float16: scale and shift. The first is to be written instead of top 0, which is
  // empty; with the second bottom 0 is the x of relu(x * scale + shift).
  Tensor top_affine, bottom_affine;
  // Number of this forward pass of this net: data position and random numbers depend on it. In a
  // pass that a CUDA graph repeats, kernels read it from the GPU's memory instead.
  uint64_t pass = 0;
  const uint64_t* live_pass = nullptr;
};

struct Backward {
  std::vector<Tensor> bottom, top;  // data; empty where reads() does not ask for it
  std::vector<Tensor> top_diff;     // empty: that top gets no gradient
  // Further parts of top_diff[0], as Prepared::top_diff_parts allows. Unlike top_diff they must
  // not be overwritten.
  std::vector<Tensor> more_top_diff;
  std::vector<Tensor> bottom_diff;  // to be overwritten; empty: not wanted
  Tensor bottom_affine;             // as Forward's
  std::vector<Tensor> parameters;
  std::vector<Tensor> parameter_diff;  // empty: not wanted
  std::vector<char> accumulate;  // for each parameter: add to the diff instead of overwriting it
  // For each parameter: an earlier step of this pass has a part in the diff, which may still be on
  // its way aside. What adds to it goes there, too.
  std::vector<char> begun;
  std::vector<Tensor> saved;
  Tensor workspace;
  // For what is handed to Context::aside(), gradients of parameters: the lane, and its workspace.
  int aside_lane = 0;
  Tensor aside_workspace;
  uint64_t pass = 0;  // of the forward pass this belongs to
  const uint64_t* live_pass = nullptr;
};

class Layer {
 public:
  virtual ~Layer() = default;

  // --- what it is ---
  virtual Arity bottoms() const { return {}; }
  virtual Arity tops() const { return {}; }
  virtual bool as_many_tops_as_bottoms() const { return false; }
  // A loss has loss_weight 1 on its first top unless the file says otherwise, and may get an
  // unnamed top.
  virtual bool is_loss() const { return false; }
  // False: no gradient ever flows to this bottom (labels); asking for one with force_backward is
  // ignored.
  virtual bool differentiable(int bottom) const { return bottom >= 0; }
  // top[0] may lie in the memory of bottom[0], and in backward bottom_diff[0] in that of
  // top_diff[0].
  virtual bool in_place() const { return false; }
  // Every top is bottom[0] with another shape: nothing is computed, memory is shared.
  virtual bool is_view() const { return false; }
  // Top 0 comes in whatever order, real type and channel padding the plan wants.
  virtual bool makes_any_format() const { return false; }
  // The tops must keep their content between passes (inputs set by the user, constant data).
  virtual bool keeps_tops() const { return false; }
  // Forward does work on the host that a CUDA graph would not repeat (reading a database).
  virtual bool works_on_host() const { return false; }
  // How large the tops are depends on the bottoms' numbers: infer() gives the most, in which shape
  // forward gets its tops, and dynamic_tops() what the last forward filled from the front of their
  // memory on. The steps after it, and its own backward, get tensors of those shapes. No step of
  // such a net is in a CUDA graph.
  virtual bool dynamic() const { return false; }
  virtual std::vector<Shape> dynamic_tops() const;
  virtual OrderRule order_rule() const { return OrderRule::plain; }
  // How many channels bottom 0 shall have in memory, channels-last and stored as said, when no
  // gradient flows to it; 0: as many as it has.
  virtual int64_t padded_channels(DType) const { return 0; }
  virtual HalfRule half_rule() const { return HalfRule::never; }
  virtual BackwardReads reads() const { return {}; }
  // False: neither pass reads this bottom's values, only its shape counts. It comes in whatever
  // order and real type it has.
  virtual bool reads_values(int bottom) const { return bottom >= 0; }
  // Top 0 comes out of a ReLU without slope, whose gradient its readers may take instead
  // (Preparation::relu_taken).
  virtual bool ends_in_relu() const { return false; }
  // What that gradient is multiplied by besides: a dropout behind the ReLU leaves zeros as it does.
  virtual float relu_factor() const { return 1; }
  // Forward is faster when it is given the sums of this bottom's channels.
  virtual bool takes_sums(int) const { return false; }
  // Top 0 is relu(x * scale + shift) of bottom 0, and forward can give the two instead.
  virtual bool gives_affine() const { return false; }
  // Backward can take the gradient through the ReLU of bottom 0 (Preparation::takes_relu) without
  // reading that bottom.
  virtual bool can_take_relu() const { return false; }
  // And with a factor other than 1.
  virtual bool can_take_relu_factor() const { return false; }
  // Of a joined layer, once it is set up: false where its members are faster one by one.
  virtual bool worth_joining(const Context&, const std::vector<Shape>&, Precision) const {
    return true;
  }
  // The bottoms' elements are those of the top, the bottoms' gradients pieces of its gradient.
  virtual bool joins_bottoms() const { return is_view(); }

  // --- life ---
  // Opens a database. Before setup, because Caffe's log has the line of a database before those of
  // its layer.
  virtual void open(Context& context);
  // Reads the message and declares parameters with add_parameter.
  virtual void setup(Context& context, const std::vector<Shape>& bottoms);
  // Pure: output shapes for these input shapes.
  virtual Inference infer(const std::vector<Shape>& bottoms) const = 0;
  // Makes the kernels for one plan ready.
  virtual Prepared prepare(Context& context, const Preparation& preparation);
  // A source's, before each forward: true when the tops of this pass have other shapes than before,
  // which infer now gives.
  virtual bool reshapes(uint64_t) { return false; }
  virtual void forward(Context& context, const Forward& pass) = 0;
  virtual void backward(Context& context, const Backward& pass);
  // Forward's tops can be written once more before backward, from the bottoms and `saved`, in about
  // the time that reading and writing them takes.
  virtual bool recomputes() const { return false; }
  // That: the same bits as forward wrote, and nothing else is changed (no running statistics).
  virtual void recompute(Context& context, const Forward& pass);
  // Where the host reads results anyway: Error for what a GPU's forward passes since the last check
  // could only note (a label out of range). Takes the note back.
  virtual void check(Context& context, const Forward& pass) const;
  // Of one forward pass; each gradient costs as many again. 0: so few that memory decides how long
  // it takes.
  virtual int64_t multiply_adds(const std::vector<Shape>& bottoms,
                                const std::vector<Shape>& tops) const;
  // A source's records, an epoch; 0: not a source, or it does not know.
  virtual int64_t records() const { return 0; }
  // Bytes of the device's memory that it holds besides blobs and parameters: records kept there.
  virtual size_t resident_bytes() const { return 0; }
  // Gives them back: they can be had from the host, more slowly.
  virtual void release_resident() {}
  // Seconds that all forward passes together have waited for a source's data.
  virtual double waited() const { return 0; }

  // --- set by the net before setup ---
  const LayerParameter& message() const { return *message_; }
  const std::string& name() const { return name_; }
  const std::string& type() const { return type_; }
  bool training() const { return training_; }  // phase TRAIN
  const std::string& folder() const {
    return folder_;
  }  // of the prototxt: where relative paths are looked up next
  uint64_t id() const {
    return id_;
  }  // a number that depends on the name only: stream of random numbers
  // A joined layer draws the numbers that its last member would.
  void draw_as(const Layer& other) { id_ = other.id_; }

  const std::vector<ParameterSpec>& parameters() const { return parameters_; }

 protected:
  // The layer's own family's message inside LayerParameter: params<PoolingParameter>(). Defaults
  // when the file gives none.
  template <typename Message>
  const Message& params() const {
    return static_cast<const Message&>(params_of(Message::descriptor()));
  }
  template <typename Message>
  bool has_params() const {
    return has_params_of(Message::descriptor());
  }
  void add_parameter(Shape shape, const FillerParameter& filler, bool learned = true) {
    parameters_.push_back({std::move(shape), &filler, learned});
  }

 private:
  friend std::unique_ptr<Layer> make_layer(const LayerParameter& message, bool training,
                                           const std::string& folder);
  const google::protobuf::Message& params_of(const google::protobuf::Descriptor* type) const;
  bool has_params_of(const google::protobuf::Descriptor* type) const;

  std::shared_ptr<const LayerParameter> message_;
  std::string name_, type_, folder_;
  bool training_ = false;
  uint64_t id_ = 0;
  std::vector<ParameterSpec> parameters_;
};

struct LayerMaker {
  std::unique_ptr<Layer> (*make)();
  const char* file;  // its source file: the opening comment is the documentation
};
struct LayerTag {};
using LayerRegistry = Registry<LayerTag, LayerMaker>;

// Error with the nearest registered names when the type is unknown. Copies the message.
std::unique_ptr<Layer> make_layer(const LayerParameter& message, bool training,
                                  const std::string& folder = "");

// At the end of a layer's file. Type is the name that prototxts use; a second line registers an
// alias.
#define REGISTER_LAYER(Type, Class)                                                 \
  [[maybe_unused]] static const bool registered_##Type = crema::LayerRegistry::add( \
      #Type,                                                                        \
      {[]() -> std::unique_ptr<crema::Layer> { return std::make_unique<Class>(); }, __FILE__})

}  // namespace crema
