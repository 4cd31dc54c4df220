// LayerRewrite: what the function that expresses a type of layer by other layers sees and does. Each
// type has one such function, registered with REWRITE_LAYER in a file of exchange/caffe/rewrites.
// It is called if the dialect does not take the layer as it is; the layers that it adds are
// rewritten in turn. Results are those of the layer, up to rounding.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/registry.h"
#include "device/context.h"
#include "exchange/caffe/caffe_graph.h"
#include "exchange/caffe/dialect.h"

namespace crema {

using FillCaffeLayer = std::function<void(LayerParameter* layer)>;

class LayerRewrite {
 public:
  LayerRewrite(Context& context, const Dialect& dialect, CaffeGraph& graph, const CaffeLayer& from,
               const std::vector<Misfit>& misfits)
      : context_(context), dialect_(dialect), graph_(graph), from_(from), misfits_(misfits) {}

  const LayerParameter& message() const { return from_.message; }
  const std::string& type() const { return from_.message.type(); }
  const Dialect& dialect() const { return dialect_; }
  bool has(const std::string& type) const { return dialect_.has(type); }

  int bottoms() const { return static_cast<int>(from_.bottoms.size()); }
  int tops() const { return static_cast<int>(from_.tops.size()); }
  int bottom(int i = 0) const { return from_.bottoms[i]; }
  Shape shape_of(int value) const { return graph_.values[value].shape; }
  Shape bottom_shape(int i = 0) const { return shape_of(bottom(i)); }
  Shape top_shape(int i = 0) const { return shape_of(from_.tops[i]); }
  const std::vector<CaffeBlob>& blobs() const { return from_.blobs; }
  std::vector<float> blob_values(int i) const { return from_.blobs[i].copy(); }
  // The layer, set up.
  std::unique_ptr<Layer> itself() const;

  // Adds a layer with one top, an intermediate value, and returns it. The layer is called
  // "layer/type".
  int add(const std::string& type, const std::vector<int>& bottoms, const FillCaffeLayer& fill = {},
          std::vector<CaffeBlob> blobs = {});
  // The same with several tops.
  std::vector<int> add_many(const std::string& type, const std::vector<int>& bottoms, int tops,
                            const FillCaffeLayer& fill);
  // Adds the layer that gives a top; it has the name of the rewritten layer.
  void write(const std::string& type, const std::vector<int>& bottoms,
             const FillCaffeLayer& fill = {}, std::vector<CaffeBlob> blobs = {}, int top = 0);
  // The same for a layer with several tops, of which one gives top 0 and the others are not needed.
  void write_one_of(const std::string& type, const std::vector<int>& bottoms, int tops, int wanted,
                    const FillCaffeLayer& fill);
  // The layer itself, changed: a translation of its fields.
  void write_changed(const std::string& type, const FillCaffeLayer& change,
                     std::vector<CaffeBlob> blobs);
  // A top is this value.
  void pass_on(int value, int top = 0);

  // Error: the dialect cannot express the layer. help: what the user may do.
  [[noreturn]] void refuse(const std::string& why, const std::string& help) const;

  std::vector<CaffeLayer> added;  // in order

 private:
  std::vector<int> add_many_as(const std::string& name, const std::string& type,
                               const std::vector<int>& bottoms, int tops,
                               const FillCaffeLayer& fill);
  std::unique_ptr<Layer> set_up(const CaffeLayer& layer, std::vector<Shape>* shapes) const;
  std::vector<Shape> infer(const CaffeLayer& layer) const;
  CaffeLayer made(const std::string& type, const std::vector<int>& bottoms,
                  const FillCaffeLayer& fill, std::vector<CaffeBlob> blobs) const;

  Context& context_;
  const Dialect& dialect_;
  CaffeGraph& graph_;
  const CaffeLayer& from_;
  const std::vector<Misfit> misfits_;
  bool name_given_ = false;
};

struct LayerRewriter {
  void (*rewrite)(LayerRewrite& layer) = nullptr;
};
struct LayerRewriterTag {};
using LayerRewriterRegistry = Registry<LayerRewriterTag, LayerRewriter>;

// REWRITE_LAYER(ReLU6, rewrite_relu6);
#define REWRITE_LAYER(Type, function)                  \
  [[maybe_unused]] static const bool rewrites_##Type = \
      crema::LayerRewriterRegistry::add(#Type, {function})

}  // namespace crema
