#include "exchange/onnx/import_patterns.h"

#include <cmath>

#include "exchange/onnx/import_attention.h"
#include "exchange/onnx/import_layers.h"

namespace crema {

namespace {

bool near(float a, double b) { return std::abs(a - b) < 1e-4 * std::abs(b); }

// A factor only.
bool is_factor(const LayerParameter& layer) {
  const PowerParameter& p = layer.power_param();
  return layer.type() == "Power" && p.power() == 1 && p.shift() == 0;
}

bool is_product(const LayerParameter& layer) {
  return layer.type() == "Eltwise" && layer.bottom_size() == 2 &&
         layer.eltwise_param().operation() == EltwiseParameter::PROD;
}

// The layer becomes one of this type, from x to its top.
LayerParameter* replace_layer(ImportedLayer* layer, const char* type, const std::string& x) {
  LayerParameter made;
  made.set_name(layer->message.name());
  made.set_type(type);
  made.add_bottom(x);
  *made.mutable_top() = layer->message.top();
  layer->message.Swap(&made);
  layer->unsupported.clear();
  layer->blobs.clear();
  return &layer->message;
}

class Patterns {
 public:
  Patterns(ImportGraph& graph, const std::set<std::string>& kept) : links_(graph, kept) {}

  void apply() {
    for (size_t i = 0; i < links_.size(); ++i) {
      ImportedLayer* const layer = links_.at(i);
      const std::string type = layer->message.type();
      if (type == "Erf") find_gelu(layer->message);
      if (is_product(layer->message)) find_gate(layer);
      if (type == "Bias") find_bias(layer);
      if (type == "InnerProduct") find_flatten(layer);
    }
    for (size_t i = 0; i < links_.size(); ++i)
      if (links_.at(i)->message.type() == "MatMul") find_attention(links_, *links_.at(i));
  }

 private:
  // x / 2 * (1 + erf(x / sqrt(2))), with the factor 1/2 at any place.
  void find_gelu(const LayerParameter& erf) {
    const ImportedLayer* const inside = links_.maker(erf.bottom(0));
    if (!inside || !is_factor(inside->message) ||
        !near(inside->message.power_param().scale(), std::sqrt(0.5)))
      return;
    const std::string x = inside->message.bottom(0);
    ImportedLayer* const sum = links_.only_reader(erf.top(0));
    if (!sum || sum->message.type() != "Power") return;
    const PowerParameter& p = sum->message.power_param();
    if (p.power() != 1 || p.scale() != p.shift()) return;
    float factor = p.scale();
    ImportedLayer* const product = links_.only_reader(sum->message.top(0));
    if (!product || !is_product(product->message)) return;
    const LayerParameter& both = product->message;
    const std::string& other =
        both.bottom(0) == sum->message.top(0) ? both.bottom(1) : both.bottom(0);
    if (other != x) {
      const ImportedLayer* const scaled = links_.maker(other);
      if (!scaled || !is_factor(scaled->message) || scaled->message.bottom(0) != x) return;
      factor *= scaled->message.power_param().scale();
    }
    ImportedLayer* last = product;
    if (!near(factor, 0.5)) {
      last = links_.only_reader(both.top(0));
      if (!last || !is_factor(last->message)) return;
      factor *= last->message.power_param().scale();
    }
    if (near(factor, 0.5)) replace_layer(last, "GELU", x);
  }

  // x times a function of x.
  void find_gate(ImportedLayer* product) {
    for (const int side : {0, 1}) {
      const std::string x = product->message.bottom(side);
      const ImportedLayer* const gate = links_.maker(product->message.bottom(1 - side));
      if (!gate || gate->message.bottom_size() != 1) continue;
      const std::string& type = gate->message.type();
      const std::string& inside = gate->message.bottom(0);
      const ImportedLayer* const before = links_.maker(inside);
      if (type == "Sigmoid" && inside == x) {
        replace_layer(product, "Swish", x);
        return;
      }
      if (type == "Sigmoid" && before && is_factor(before->message) &&
          before->message.bottom(0) == x) {
        const float beta = before->message.power_param().scale();
        replace_layer(product, "Swish", x)->mutable_swish_param()->set_beta(beta);
        return;
      }
      const HardSigmoidParameter& line = gate->message.hard_sigmoid_param();
      if (type == "HardSigmoid" && inside == x && near(line.alpha(), 1.0 / 6) &&
          line.beta() == 0.5f) {
        replace_layer(product, "HardSwish", x);
        return;
      }
      if (type == "TanH" && before && before->message.type() == "BNLL" &&
          before->message.bottom(0) == x) {
        replace_layer(product, "Mish", x);
        return;
      }
    }
  }

  // A learned bias behind a layer that can have one.
  void find_bias(ImportedLayer* bias) {
    if (bias->blobs.size() != 1) return;
    ImportedLayer* const before = links_.maker(bias->message.bottom(0));
    if (!before || links_.only_reader(bias->message.bottom(0)) != bias) return;
    const BiasParameter& p = bias->message.bias_param();
    LayerParameter& message = before->message;
    const Shape& of_bias = bias->blobs[0].shape;
    if (message.type() == "Scale" && before->blobs.size() == 1) {
      const ScaleParameter& scale = message.scale_param();
      if (scale.axis() != p.axis() || before->blobs[0].shape != of_bias) return;
      message.mutable_scale_param()->set_bias_term(true);
    } else if (message.type() == "Convolution" && before->blobs.size() == 1) {
      if (p.axis() != 1 || of_bias.axes() != 1) return;
      message.mutable_convolution_param()->clear_bias_term();
    } else if (message.type() == "InnerProduct" && before->blobs.size() == 1) {
      const int last = links_.shape(message.top(0)).axes() - 1;
      if (p.axis() != last || of_bias.axes() != 1) return;
      message.mutable_inner_product_param()->clear_bias_term();
    } else {
      return;
    }
    before->blobs.push_back(std::move(bias->blobs[0]));
    message.set_name(bias->message.name());
    links_.join(before, bias);
  }

  // InnerProduct flattens its bottom itself.
  void find_flatten(ImportedLayer* product) {
    if (product->message.bottom_size() != 1 || product->message.inner_product_param().axis() != 1)
      return;
    const std::string x = product->message.bottom(0);
    ImportedLayer* const flatten = links_.maker(x);
    if (!flatten || flatten->message.type() != "Flatten" || links_.only_reader(x) != product)
      return;
    links_.skip(flatten, product);
  }

  ImportLinks links_;
};

}  // namespace

void apply_import_patterns(ImportGraph& graph, const std::set<std::string>& kept) {
  Patterns(graph, kept).apply();
}

}  // namespace crema
