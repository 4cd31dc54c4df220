// ImportGraph: the net under construction while a model is imported, and what is known of the
// model's values.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "device/context.h"
#include "exchange/onnx/onnx_tensor.h"
#include "proto/layer.pb.h"

namespace crema {

// A parameter of a layer.
struct LayerBlob {
  Shape shape;
  std::vector<float> values;
};

struct ImportedLayer {
  LayerParameter message;
  std::string node;  // the model's node: Conv "conv1"; "": none
  std::vector<LayerBlob> blobs;
  // Not empty: the net has no such layer, and this is why, unless a pattern with it is found.
  std::string unsupported;
};

// Padding that is not yet part of a layer, for each axis.
struct PendingPad {
  std::vector<int64_t> before, behind;
  float value = 0;
};

// A value of the model: a constant, a blob, or both.
struct ImportValue {
  std::shared_ptr<const OnnxTensor> constant;
  std::string blob;
  Shape shape;
  bool is_integer = false;
  bool is_index = false;  // a blob of any numbers that are rounded towards zero, which indices are
  std::shared_ptr<const PendingPad> pad;  // of the blob; `shape` includes it
};

using FillLayer = std::function<void(LayerParameter* layer)>;

class ImportGraph {
 public:
  explicit ImportGraph(Context& context) : context_(context) {}

  // Names of the model's values, which blobs get from it only.
  void reserve_blob(const std::string& name) { blob_names_.insert(name); }
  std::string unique_blob(const std::string& wish) { return unique(wish, &blob_names_); }
  std::string unique_layer(const std::string& wish) { return unique(wish, &layer_names_); }
  void release_layer(const std::string& name) { layer_names_.erase(name); }

  // Adds a layer with these tops; their shapes are what the layer makes of its bottoms.
  ImportedLayer* add(const std::string& type, const std::string& name,
                     const std::vector<std::string>& bottoms, const std::vector<std::string>& tops,
                     const FillLayer& fill, std::vector<LayerBlob> blobs);
  // Adds what is no layer yet, with the shape of its top.
  void add_unsupported(const std::string& type, const std::string& name,
                       const std::vector<std::string>& bottoms, const std::string& top,
                       const Shape& shape, const std::string& why);
  void rename_top(const std::string& from, const std::string& to);

  const Shape& shape_of(const std::string& blob) const { return shapes_.at(blob); }
  ImportedLayer* maker_of(const std::string& blob);

  std::vector<ImportedLayer> layers;
  std::map<std::string, ImportValue> values;
  std::set<std::string> notes;  // what a user should know
  std::string node;             // of layers that are added

 private:
  static std::string unique(const std::string& wish, std::set<std::string>* taken);

  Context& context_;
  std::set<std::string> blob_names_, layer_names_;
  std::map<std::string, Shape> shapes_;
};

}  // namespace crema
