// CustomLayer: layers of a program's own, outside Crema's source tree. CMake copies this text into the
// installed crema.h, so it has a guard that travels with it instead of #pragma once.
#ifndef CREMA_CUSTOM_LAYER_H
#define CREMA_CUSTOM_LAYER_H

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace crema {

// What a file says of a layer.
struct CustomLayerSettings {
  std::string name;           // that the file gives the layer
  std::string text;           // that custom_param { text: "..." } has; its form is the layer's own
  int bottoms = 0, tops = 0;  // how many
  bool training = false;      // phase TRAIN
};

// Values that a layer reads: float32 in row-major order, in host memory, wherever the net computes.
struct CustomInput {
  std::span<const int64_t> shape;
  std::span<const float> values;
};
// Values that it writes.
struct CustomOutput {
  std::span<const int64_t> shape;
  std::span<float> values;
};

// A layer that nets name with its own type: `type: "Clip01"`. What it throws, derived from std::exception,
// becomes an Error with the place in the file and the layer's name. Each net has objects of its own, and one
// thread at a time calls them.
class CustomLayer {
 public:
  using Shape = std::vector<int64_t>;

  // A blob of weights: learned if a solver trains the net, and in its .caffemodel.
  struct Parameter {
    Shape shape;
    std::vector<float> values = {};  // the first ones, as many as the shape has; empty: 0
    bool learned = true;             // false: no gradient, no update
  };
  struct Forward {
    std::vector<CustomInput> bottoms;
    std::vector<CustomOutput> tops;  // to be written; what is in them before means nothing
    std::vector<CustomInput> parameters;
    uint64_t pass = 0;  // counts forward passes: for random numbers that a resumed run repeats
  };
  struct Backward {
    std::vector<CustomInput> bottoms, tops;  // those of the forward pass
    std::vector<CustomInput> top_gradients;  // no values: nothing that learns depends on that top
    std::vector<CustomOutput> bottom_gradients;  // zeros, to be written; no values: not wanted
    std::vector<CustomInput> parameters;
    std::vector<CustomOutput> parameter_gradients;  // to be added to; no values: not wanted
    uint64_t pass = 0;
  };

  virtual ~CustomLayer() = default;

  // Its weights, asked for once, with the shapes of the bottoms then.
  virtual std::vector<Parameter> parameters(const std::vector<Shape>& /*bottoms*/) { return {}; }
  // The shapes of its tops for bottoms of these shapes: as many as the file names. A loss may have one that the
  // file does not name.
  virtual std::vector<Shape> tops(const std::vector<Shape>& bottoms) = 0;
  virtual void forward(const Forward& pass) = 0;
  // Error by default: nothing that learns may then depend on the layer.
  virtual void backward(const Backward& pass);
  // False for labels: no gradient flows to this bottom.
  virtual bool differentiable(size_t /*bottom*/) const { return true; }
  // A loss has loss_weight 1 on its first top unless the file says otherwise.
  virtual bool is_loss() const { return false; }
};

using CustomLayerMaker =
    std::function<std::unique_ptr<CustomLayer>(const CustomLayerSettings& settings)>;

// From now on nets of this process can have layers of the type. Any thread may call it. Error for a type
// that is there already.
void register_layer(const std::string& type, CustomLayerMaker maker);

}  // namespace crema

#endif
