#include "exchange/caffe/layer_rewrite.h"

#include <algorithm>

#include "layers/layer.h"

namespace crema {

CaffeLayer LayerRewrite::made(const std::string& type, const std::vector<int>& bottoms,
                              const FillCaffeLayer& fill, std::vector<CaffeBlob> blobs) const {
  CaffeLayer layer;
  layer.message.set_type(type);
  if (fill) fill(&layer.message);
  for (const int id : bottoms) layer.bottoms.push_back(graph_.find(id));
  layer.blobs = std::move(blobs);
  layer.place = from_.place;
  return layer;
}

std::unique_ptr<Layer> LayerRewrite::set_up(const CaffeLayer& layer,
                                            std::vector<Shape>* shapes) const {
  LayerParameter message = layer.message;
  message.clear_bottom();
  message.clear_top();
  for (const int id : layer.bottoms) {
    shapes->push_back(shape_of(id));
    message.add_bottom(cat("bottom", id));
  }
  for (size_t i = 0; i < std::max<size_t>(layer.tops.size(), 1); ++i)
    message.add_top(cat("top", i));
  std::unique_ptr<Layer> made = make_layer(message, false);
  made->setup(context_, *shapes);
  return made;
}

std::unique_ptr<Layer> LayerRewrite::itself() const {
  std::vector<Shape> shapes;
  return set_up(from_, &shapes);
}

std::vector<Shape> LayerRewrite::infer(const CaffeLayer& layer) const {
  std::vector<Shape> shapes;
  return set_up(layer, &shapes)->infer(shapes).tops;
}

int LayerRewrite::add(const std::string& type, const std::vector<int>& bottoms,
                      const FillCaffeLayer& fill, std::vector<CaffeBlob> blobs) {
  CaffeLayer layer = made(type, bottoms, fill, std::move(blobs));
  const std::string name = graph_.unique_layer(cat(message().name(), "/", lower_case(type)));
  layer.message.set_name(name);
  layer.tops = {graph_.add_value(name, infer(layer)[0])};
  added.push_back(std::move(layer));
  return added.back().tops[0];
}

std::vector<int> LayerRewrite::add_many(const std::string& type, const std::vector<int>& bottoms,
                                        int tops, const FillCaffeLayer& fill) {
  return add_many_as(graph_.unique_layer(cat(message().name(), "/", lower_case(type))), type,
                     bottoms, tops, fill);
}

std::vector<int> LayerRewrite::add_many_as(const std::string& name, const std::string& type,
                                           const std::vector<int>& bottoms, int tops,
                                           const FillCaffeLayer& fill) {
  CaffeLayer layer = made(type, bottoms, fill, {});
  layer.message.set_name(name);
  layer.tops.resize(tops);
  const std::vector<Shape> shapes = infer(layer);
  for (int i = 0; i < tops; ++i) layer.tops[i] = graph_.add_value(cat(name, "_part", i), shapes[i]);
  added.push_back(layer);
  return layer.tops;
}

void LayerRewrite::write(const std::string& type, const std::vector<int>& bottoms,
                         const FillCaffeLayer& fill, std::vector<CaffeBlob> blobs, int top) {
  CaffeLayer layer = made(type, bottoms, fill, std::move(blobs));
  layer.message.set_name(name_given_
                             ? graph_.unique_layer(cat(message().name(), "/", lower_case(type)))
                             : message().name());
  name_given_ = true;
  layer.tops = {from_.tops[top]};
  const Shape shape = infer(layer)[0];
  require(shape == top_shape(top), "rewritten as ", type, " it would have shape ", shape.brief(),
          " instead of ", top_shape(top).brief(), "; please report this");
  added.push_back(std::move(layer));
}

void LayerRewrite::write_one_of(const std::string& type, const std::vector<int>& bottoms, int tops,
                                int wanted, const FillCaffeLayer& fill) {
  const std::vector<int> all = add_many_as(message().name(), type, bottoms, tops, fill);
  name_given_ = true;
  require(shape_of(all[wanted]) == top_shape(), "rewritten as ", type, " it would have shape ",
          shape_of(all[wanted]).brief(), " instead of ", top_shape().brief(),
          "; please report this");
  added.back().tops[wanted] = from_.tops[0];
}

void LayerRewrite::write_changed(const std::string& type, const FillCaffeLayer& change,
                                 std::vector<CaffeBlob> blobs) {
  CaffeLayer layer = from_;
  layer.message.set_type(type);
  if (change) change(&layer.message);
  layer.blobs = std::move(blobs);
  name_given_ = true;
  added.push_back(std::move(layer));
}

void LayerRewrite::pass_on(int value, int top) {
  const int from = graph_.find(value), to = from_.tops[top];
  if (graph_.values[to].output) {
    // The result keeps its name: the value before takes it, or a layer that changes nothing.
    const int maker = graph_.maker_of(from);
    const bool may_rename =
        maker >= 0 && graph_.layers[maker].message.type() != "Input" && !graph_.values[from].output;
    if (!may_rename) return write("Power", {from}, {}, {}, top);
    graph_.values[from].blob = graph_.values[to].blob;
    graph_.values[from].output = graph_.values[from].of_net = true;
  }
  graph_.values[to].same_as = from;
}

void LayerRewrite::refuse(const std::string& why, const std::string& help) const {
  fail(text_of(misfits_), ", and ", why, "; ", help);
}

}  // namespace crema
