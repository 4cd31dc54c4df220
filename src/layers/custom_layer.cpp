#include "layers/custom_layer.h"

#include <list>
#include <map>
#include <mutex>

#include "base/error.h"
#include "layers/custom_types.h"
#include "layers/layer.h"
#include "proto/filler.pb.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

struct CustomTypes {
  std::mutex mutex;
  std::map<std::string, CustomLayerMaker> makers;
};

CustomTypes& custom_types() {
  static CustomTypes types;
  return types;
}

// Calls the program's code, whose exceptions become Errors.
template <typename Call>
auto guarded(const Call& call) {
  try {
    return call();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

// Tensors as a custom layer sees them: their own memory where it is float32 on the host, else copies.
class HostViews {
 public:
  explicit HostViews(Context& context) : context_(context) {}

  CustomInput input(const Tensor& tensor) {
    if (!tensor) return {};
    if (is_direct(tensor)) return {dims(tensor), {tensor.data<float>(), size(tensor)}};
    return {dims(tensor), copies_.emplace_back(to_floats(context_, tensor))};
  }
  std::vector<CustomInput> inputs(const std::vector<Tensor>& tensors) {
    std::vector<CustomInput> all;
    for (const Tensor& tensor : tensors) all.push_back(input(tensor));
    return all;
  }
  // What the layer finds in a tensor that it writes.
  enum class Start { anything, zeros, values };
  CustomOutput output(const Tensor& tensor, Start start) {
    if (!tensor) return {};
    if (is_direct(tensor)) {
      if (start == Start::zeros) zero(context_, tensor);
      return {dims(tensor), {tensor.data<float>(), size(tensor)}};
    }
    std::vector<float>& copy = copies_.emplace_back(
        start == Start::values ? to_floats(context_, tensor) : std::vector<float>(size(tensor)));
    written_.push_back({&copy, tensor});
    return {dims(tensor), copy};
  }
  // Stores what was written into copies.
  void finish() {
    for (const auto& [copy, tensor] : written_)
      if (!copy->empty()) from_floats(context_, copy->data(), tensor);
  }

 private:
  static bool is_direct(const Tensor& tensor) {
    return tensor.device() == Device::cpu && tensor.dtype() == DType::f32;
  }
  static std::span<const int64_t> dims(const Tensor& tensor) { return tensor.shape().dims(); }
  static size_t size(const Tensor& tensor) { return static_cast<size_t>(tensor.count()); }

  Context& context_;
  std::list<std::vector<float>> copies_;  // their addresses stay
  std::vector<std::pair<const std::vector<float>*, Tensor>> written_;
};

class AdaptedLayer final : public Layer {
 public:
  AdaptedLayer(const CustomLayerMaker& maker, const LayerParameter& message, bool training)
      : object_(guarded([&] {
          return maker({message.name(), message.custom_param().text(), message.bottom_size(),
                        message.top_size(), training});
        })) {
    require(object_ != nullptr, "the maker of layer type ", message.type(), " returned no layer");
  }

  Arity bottoms() const override { return {1, -1}; }
  Arity tops() const override { return {0, -1}; }
  bool is_loss() const override { return object_->is_loss(); }
  bool differentiable(int bottom) const override {
    return object_->differentiable(static_cast<size_t>(bottom));
  }
  LayerTraits traits() const override { return {.works_on_host = true}; }
  LossParts loss_parts(const std::vector<Shape>&) const override {
    if (!is_loss()) return {};
    return LossParts::none("it is a layer of the program's own: train with one rank");
  }
  Tensor given_parameter(size_t index) const override { return given_[index]; }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    Context host(Device::cpu);
    for (const CustomLayer::Parameter& one :
         guarded([&] { return object_->parameters(dims_of(bottoms)); })) {
      const Shape shape = shape_of(one.shape, cat("blob ", given_.size()));
      require(one.values.empty() || static_cast<int64_t>(one.values.size()) == shape.count(),
              "blob ", given_.size(), " has ", one.values.size(), " first values; its shape ",
              shape.brief(), " needs ", shape.count());
      given_.emplace_back(host, shape);
      if (one.values.empty()) {
        zero(host, given_.back());
      } else {
        from_floats(host, one.values.data(), given_.back());
      }
      add_parameter(shape, FillerParameter::default_instance(), one.learned);
    }
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const std::vector<CustomLayer::Shape> tops =
        guarded([&] { return object_->tops(dims_of(bottoms)); });
    const auto named = static_cast<size_t>(message().top_size());
    const bool is_unnamed_loss = is_loss() && named == 0 && tops.size() == 1;
    require(tops.size() == named || is_unnamed_loss, "layer type ", type(), " has ", tops.size(),
            " tops for these bottoms, but the file names ", named);
    Inference inference;
    for (size_t i = 0; i < tops.size(); ++i)
      inference.tops.push_back(shape_of(tops[i], cat("top ", i)));
    return inference;
  }

  void forward(Context& context, const Forward& pass) const override {
    HostViews views(context);
    CustomLayer::Forward custom;
    custom.bottoms = views.inputs(pass.bottom);
    for (const Tensor& top : pass.top)
      custom.tops.push_back(views.output(top, HostViews::Start::anything));
    custom.parameters = views.inputs(pass.parameters);
    custom.pass = pass.pass;
    guarded([&] { object_->forward(custom); });
    views.finish();
  }

  void backward(Context& context, const Backward& pass) const override {
    HostViews views(context);
    CustomLayer::Backward custom;
    custom.bottoms = views.inputs(pass.bottom);
    custom.tops = views.inputs(pass.top);
    custom.top_gradients = views.inputs(pass.top_diff);
    for (const Tensor& diff : pass.bottom_diff)
      custom.bottom_gradients.push_back(views.output(diff, HostViews::Start::zeros));
    custom.parameters = views.inputs(pass.parameters);
    for (size_t k = 0; k < pass.parameter_diff.size(); ++k) {
      const bool adds = pass.accumulate[k] != 0;
      custom.parameter_gradients.push_back(views.output(
          pass.parameter_diff[k], adds ? HostViews::Start::values : HostViews::Start::zeros));
    }
    custom.pass = pass.pass;
    guarded([&] { object_->backward(custom); });
    views.finish();
  }

 private:
  static std::vector<CustomLayer::Shape> dims_of(const std::vector<Shape>& shapes) {
    std::vector<CustomLayer::Shape> all;
    for (const Shape& shape : shapes) all.push_back(shape.dims());
    return all;
  }
  Shape shape_of(const CustomLayer::Shape& dims, const std::string& what) const {
    for (const int64_t extent : dims)
      require(extent >= 0, "layer type ", type(), " gives ", what, " an extent of ", extent);
    return Shape(dims);
  }

  std::unique_ptr<CustomLayer> object_;
  std::vector<Tensor> given_;
};

}  // namespace

std::unique_ptr<Layer> make_custom_layer(const LayerParameter& message, bool training) {
  CustomLayerMaker maker;
  {
    CustomTypes& types = custom_types();
    const std::scoped_lock lock(types.mutex);
    const auto at = types.makers.find(message.type());
    if (at == types.makers.end()) return nullptr;
    maker = at->second;
  }
  return std::make_unique<AdaptedLayer>(maker, message, training);
}

std::vector<std::string> custom_layer_types() {
  CustomTypes& types = custom_types();
  const std::scoped_lock lock(types.mutex);
  std::vector<std::string> names;
  for (const auto& [name, maker] : types.makers) names.push_back(name);
  return names;
}

void CustomLayer::backward(const Backward&) {
  fail("it has no gradient: nothing that learns may depend on its output");
}

void register_layer(const std::string& type, CustomLayerMaker maker) {
  require(!type.empty() && maker, "register_layer() needs the name of a type and its maker");
  require(!LayerRegistry::has(type), "layer type ", type, " is one of Crema's: take another name");
  CustomTypes& types = custom_types();
  const std::scoped_lock lock(types.mutex);
  require(types.makers.emplace(type, std::move(maker)).second, "layer type ", type,
          " is registered already");
}

}  // namespace crema
