// Layer: one operation of a net. Not a template; known only by its registered name; one file per
// layer. The net calls, in this order: open and setup once; infer and prepare for each set of
// bottom shapes; then forward and backward. A layer reports a mistake by throwing Error without
// naming itself: the net adds file:line:column and the layer's name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/registry.h"
#include "device/context.h"
#include "layers/layer_facts.h"
#include "layers/layer_hooks.h"

namespace google::protobuf {
class Descriptor;
class FieldDescriptor;
class Message;
}  // namespace google::protobuf

namespace crema {

class LayerParameter;

// The field of LayerParameter with this type of message; Error unless there is exactly one.
const google::protobuf::FieldDescriptor* params_field(const google::protobuf::Descriptor* type);

class Layer : public LayerHooks {
 public:
  // --- properties ---
  virtual Arity bottoms() const { return {}; }
  virtual Arity tops() const { return {}; }
  // A loss has loss_weight 1 on its first top unless the file says otherwise, and may have an
  // unnamed top.
  virtual bool is_loss() const { return false; }
  // Called after setup.
  virtual LayerTraits traits() const { return {}; }
  // How the parts of top 0 and of its gradients combine if several ranks share a batch. Every loss
  // declares it (tests/layers/loss_parts_test.cpp); called after setup.
  virtual LossParts loss_parts(const std::vector<Shape>& /*bottoms*/) const { return {}; }
  // For PartsRule::counted, from what forward has saved: two values of the net's real type. The
  // first is the divisor of top 0, which backward also divides by. The second is the count behind
  // it, which may be below 1 when the divisor is not. The solver writes the divisor of all ranks
  // before backward.
  virtual Tensor loss_count(const std::vector<Tensor>& /*saved*/) const { return {}; }
  // False: no gradient ever flows to this bottom (labels); asking for one with force_backward is
  // ignored.
  virtual bool differentiable(int bottom) const { return bottom >= 0; }

  // --- lifecycle ---
  // Reads the message and declares parameters with add_parameter.
  virtual void setup(Context& context, const std::vector<Shape>& bottoms);
  // Pure function: output shapes for these input shapes.
  virtual Inference infer(const std::vector<Shape>& bottoms) const = 0;
  // Prepares for one plan: creates kernels, and what else the passes of that plan keep
  // (Prepared::state). From here on the layer itself stays as it is, so that several plans, each in
  // its own thread, can run it. Exceptions are objects that exist once: a database that a source
  // reads, a Python object, a file that is written.
  virtual Prepared prepare(Context& context, const Preparation& preparation) const;
  virtual void forward(Context& context, const Forward& pass) const = 0;
  virtual void backward(Context& context, const Backward& pass) const;
  // Called when the host reads results anyway: throws Error for mistakes that forward passes on a
  // GPU since the last check could only flag (a label out of range). Clears the flag.
  virtual void check(Context& context, const Forward& pass) const;

  // --- set by the net before setup ---
  const LayerParameter& message() const { return *message_; }
  const std::string& name() const { return name_; }
  const std::string& type() const { return type_; }
  bool training() const { return training_; }  // phase TRAIN
  // The prototxt's folder: relative paths are also resolved from it.
  const std::string& folder() const { return folder_; }
  // Depends on the name only; selects the stream of random numbers.
  uint64_t id() const { return id_; }
  // A fused layer uses the random numbers of its last member.
  void share_rng_of(const Layer& other) { id_ = other.id_; }

  const std::vector<ParameterSpec>& parameters() const { return parameters_; }

 protected:
  // The layer family's message inside LayerParameter: params<PoolingParameter>(). Defaults if the
  // file gives none.
  template <typename Message>
  const Message& params() const {
    return static_cast<const Message&>(params_of(field_of<Message>()));
  }
  template <typename Message>
  bool has_params() const {
    return has_params_of(field_of<Message>());
  }
  // For a fused layer, whose type joins its members' types with '+': whether `member` is one of
  // them.
  bool fuses(std::string_view member) const;
  void add_parameter(Shape shape, const FillerParameter& filler, bool learned = true) {
    parameters_.push_back({std::move(shape), &filler, learned});
  }

 private:
  friend std::unique_ptr<Layer> make_layer(const LayerParameter& message, bool training,
                                           const std::string& folder);
  // Looked up once, because forward passes call params().
  template <typename Message>
  static const google::protobuf::FieldDescriptor* field_of() {
    static const google::protobuf::FieldDescriptor* const field =
        params_field(Message::descriptor());
    return field;
  }
  const google::protobuf::Message& params_of(const google::protobuf::FieldDescriptor* field) const;
  bool has_params_of(const google::protobuf::FieldDescriptor* field) const;

  std::shared_ptr<const LayerParameter> message_;
  std::string name_, type_, folder_;
  bool training_ = false;
  uint64_t id_ = 0;
  std::vector<ParameterSpec> parameters_;
};

struct LayerMaker {
  std::unique_ptr<Layer> (*make)();
  const char* file;  // its source file: the opening comment is the documentation
  LayerFacts facts;  // those that the class declares
};
struct LayerTag {};
using LayerRegistry = Registry<LayerTag, LayerMaker>;

// For a type whose fields select its class ("Python"): creates that layer, and may turn the message
// into that of another type. nullptr: use the type's own class.
using LayerChooser = std::unique_ptr<Layer> (*)(LayerParameter& message, bool training);
struct ChooserTag {};
using ChooserRegistry = Registry<ChooserTag, LayerChooser>;

// Error with the nearest registered names if the type is unknown. Copies the message.
std::unique_ptr<Layer> make_layer(const LayerParameter& message, bool training,
                                  const std::string& folder = "");

// At the end of a layer's file. Type is the name that prototxts use; a second line registers an
// alias, which may pass other arguments to the class's constructor: REGISTER_LAYER(MAE, L1Loss,
// true).
#define REGISTER_LAYER(Type, Class, ...)                                                       \
  [[maybe_unused]] static const bool registered_##Type = crema::LayerRegistry::add(            \
      #Type,                                                                                   \
      {[]() -> std::unique_ptr<crema::Layer> { return std::make_unique<Class>(__VA_ARGS__); }, \
       __FILE__, crema::declared_facts<Class>()})

// The same for fused types, whose names are not identifiers: inside the anonymous namespace,
// REGISTER_FUSED(ConvolutionLayer, "Convolution+ReLU", ...).
#define REGISTER_FUSED(Class, ...)                                                            \
  [[maybe_unused]] static const bool registered_fused_##Class = [] {                          \
    for (const char* type : {__VA_ARGS__})                                                    \
      crema::LayerRegistry::add(                                                              \
          type, {[]() -> std::unique_ptr<crema::Layer> { return std::make_unique<Class>(); }, \
                 __FILE__, crema::declared_facts<Class>()});                                  \
    return true;                                                                              \
  }()

}  // namespace crema
