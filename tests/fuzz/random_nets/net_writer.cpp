#include "fuzz/random_nets/net_writer.h"

#include <google/protobuf/text_format.h>

#include <cstdio>

#include "base/error.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema::tests {
namespace {

LayerParameter parsed(const std::string& text) {
  LayerParameter layer;
  require(google::protobuf::TextFormat::ParseFromString(text, &layer), "no layer: ", text);
  return layer;
}

std::string dims(const Shape& shape) {
  std::string text = "shape {";
  for (const int64_t dim : shape.dims()) text += cat(" dim: ", dim);
  return text + " }";
}

}  // namespace

NetWriter::NetWriter(uint64_t seed, uint64_t number, int batch, bool for_ranks)
    : dice({seed, number}), batch(batch), for_ranks(for_ranks), context_(Device::cpu) {
  net_.set_name(cat("random_", seed, "_", number));
  if (maybe(10)) frozen_ = between(3, 15);
  if (maybe(3)) net_.set_force_backward(true);
}

int NetWriter::add(LayerParameter layer, const std::vector<int>& bottoms, int tops, bool in_place) {
  const int number = net_.layer_size();
  layer.set_name(cat("l", number, "_", layer.type()));
  std::vector<Shape> shapes;
  bool gradient = layer.param_size() > 0;
  for (const int bottom : bottoms) {
    layer.add_bottom(blobs_[bottom].name);
    shapes.push_back(blobs_[bottom].shape);
    gradient = gradient || blobs_[bottom].gradient;
    ++blobs_[bottom].readers;
  }
  for (int i = 0; i < tops; ++i) {
    const std::string suffix = i == 0 ? "" : cat("_", i);
    layer.add_top(in_place ? blobs_[bottoms[0]].name : cat("b", number, suffix));
  }
  std::vector<Shape> made;
  try {
    const std::unique_ptr<Layer> object = make_layer(layer, true);
    object->setup(context_, shapes);
    made = object->infer(shapes).tops;
    gradient = gradient || !object->parameters().empty();
  } catch (const Error& error) {
    std::string text;
    for (const Shape& shape : shapes) text += " " + shape.brief();
    fail("the generator has made a layer that is refused: ", error.what(), "\n",
         layer.ShortDebugString(), text);
  }
  if (in_place) blobs_[bottoms[0]].replaced = true;
  const int first = blobs();
  for (int i = 0; i < tops; ++i) {
    blobs_.push_back({layer.top(i), made.at(i), 0, gradient});
    producers_.push_back(number);
  }
  *net_.add_layer() = layer;
  return first;
}

int NetWriter::add(const std::string& type, const std::vector<int>& bottoms,
                   const std::string& params, int tops) {
  LayerParameter layer = parsed(cat("type: '", type, "' ", params));
  bool gradient = false;
  for (const int bottom : bottoms) gradient = gradient || blobs_[bottom].gradient;
  const bool loss = type.find("Loss") != std::string::npos;  // its labels take no gradient
  if (gradient && !loss && maybe(3)) {
    for (size_t i = 0; i < bottoms.size(); ++i) layer.add_propagate_down(i > 0 && maybe(50));
  }
  return add(std::move(layer), bottoms, tops, false);
}

int NetWriter::add_pointwise(const std::string& type, int bottom, const std::string& params) {
  return add(parsed(cat("type: '", type, "' ", params)), {bottom}, 1, maybe(45));
}

int NetWriter::add_learned(const std::string& type, const std::vector<int>& bottoms,
                           const std::string& params, int parameters, bool may_work_in_place) {
  std::string key = cat(type, params);
  for (const int bottom : bottoms) key += "," + blobs_[bottom].shape.brief();
  std::string param = shared_[key];
  if (param.empty() || maybe(30)) {
    param.clear();
    const bool named = maybe(30);
    const int rates = net_.layer_size() < frozen_ ? 0 : between(0, 9);
    for (int i = 0; i < parameters; ++i) {
      param += "param {";
      if (named) param += cat(" name: 'p", net_.layer_size(), "_", i, "'");
      if (rates == 0 || (rates == 1 && i == 0)) param += " lr_mult: 0";
      if (rates == 2) param += cat(" lr_mult: ", i + 1, " decay_mult: ", 1 - i % 2);
      param += " } ";
    }
    if (named) shared_[key] = param;
  }
  return add(parsed(cat("type: '", type, "' ", params, " ", param)), bottoms, 1,
             may_work_in_place && maybe(45));
}

int NetWriter::data(const Shape& shape, const std::string& filler, bool always_the_same) {
  return add("DummyData", {},
             cat("dummy_data_param { ", dims(shape), " data_filler { ", filler, " }",
                 always_the_same ? " refill: false }" : " }"));
}

int NetWriter::labels(Shape shape, int classes) {
  shape.push_back(classes);
  const int random = normal(shape);
  return add("ArgMax", {random}, cat("argmax_param { axis: ", shape.axes() - 1, " }"));
}

std::string NetWriter::number(double low, double high) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g",
                low + (high - low) * static_cast<double>(dice.below(1001)) / 1000);
  return text;
}

void NetWriter::set_loss_weight(int blob, const std::string& weight) {
  LayerParameter& layer = *net_.mutable_layer(producers_[blob]);
  if (layer.loss_weight_size() > 0) return;
  for (const std::string& top : layer.top())
    layer.add_loss_weight(top == blobs_[blob].name ? std::stof(weight) : 0);
}

}  // namespace crema::tests
