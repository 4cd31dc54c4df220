#include "net/sources/weight_shapes.h"

#include <algorithm>
#include <set>

#include "layers/layer_facts.h"

namespace crema {

namespace {

constexpr int64_t kLargest = 2048;  // side of a square that is looked at

// The first layer of this type with known weights that `top` leads to, through layers without
// weights if `direct`.
const LayerParameter* first_reader(const std::string& top, const NetParameter& layers,
                                   const std::string& type, const WeightShapes& weights,
                                   bool direct) {
  std::set<std::string> reached = {top};
  for (const LayerParameter& layer : layers.layer()) {
    const bool reads = std::any_of(layer.bottom().begin(), layer.bottom().end(),
                                   [&](const auto& bottom) { return reached.count(bottom) > 0; });
    if (!reads) continue;
    const bool known = weights.count(layer.name()) > 0;
    if (layer.type() == type && known) return &layer;
    if (direct && known && !facts_of(layer.type()).keeps_channels) return nullptr;
    reached.insert(layer.top().begin(), layer.top().end());
  }
  return nullptr;
}

// The number of values that `reader` gets from a square of this side; none if a layer cannot take
// it.
class ValuesOfSide {
 public:
  ValuesOfSide(const std::string& top, const Shape& shape, const NetParameter& layers,
               const LayerParameter& reader, const ShapesWithInput& shapes)
      : bottom_(reader.bottom(0)), axis_(reader.inner_product_param().axis()), shapes_(shapes) {
    LayerParameter* input = net_.add_layer();
    input->set_name(top);
    input->set_type("Input");
    input->add_top(top);
    extents_ = input->mutable_input_param()->add_shape();
    for (const int64_t extent : shape.dims()) extents_->add_dim(extent);
    for (const LayerParameter& layer : layers.layer()) {
      if (&layer == &reader) break;
      *net_.add_layer() = layer;
    }
    extents_ = net_.mutable_layer(0)->mutable_input_param()->mutable_shape(0);
  }

  std::optional<int64_t> operator()(int64_t side) {
    extents_->set_dim(2, side);
    extents_->set_dim(3, side);
    const auto found = shapes_(net_);
    if (!found || found->count(bottom_) == 0) return std::nullopt;
    const Shape& shape = found->at(bottom_);
    return shape.count(shape.canonical_axis(axis_));
  }

 private:
  const std::string bottom_;
  const int axis_;
  const ShapesWithInput& shapes_;
  NetParameter net_;
  BlobShape* extents_ = nullptr;
};

int halvings(int64_t side) {
  int count = 0;
  for (; side % 2 == 0; side /= 2) ++count;
  return count;
}

// The number of values never becomes less for a larger image. 0: no side gives so many.
int64_t side_for(int64_t wanted, int64_t usual, ValuesOfSide values) {
  int64_t least = 1, beyond = kLargest + 1;
  while (least < beyond) {
    const int64_t middle = least + (beyond - least) / 2;
    const auto got = values(middle);
    if (!got || *got < wanted) {
      least = middle + 1;
    } else {
      beyond = middle;
    }
  }
  if (least > kLargest || values(least) != wanted) return 0;
  constexpr int64_t kOfMany = 224;
  for (const int64_t side : {usual, kOfMany})
    if (side >= least && values(side) == wanted) return side;
  int64_t best = least;
  for (int64_t side = least + 1; side <= kLargest && values(side) == wanted; ++side)
    if (halvings(side) > halvings(best)) best = side;
  return best;
}

}  // namespace

Shape shape_by_weights(const std::string& top, const Shape& given, bool sized,
                       const NetParameter& layers, const WeightShapes& weights,
                       const ShapesWithInput& shapes) {
  Shape shape = given;
  if (shape.axes() != 4) return shape;
  if (const LayerParameter* first = first_reader(top, layers, "Convolution", weights, true)) {
    const Shape& kernel = weights.at(first->name());
    if (kernel.axes() == 4) shape[1] = kernel[1] * first->convolution_param().group();
  }
  const LayerParameter* reader = first_reader(top, layers, "InnerProduct", weights, false);
  if (sized || !reader || reader->inner_product_param().transpose() || reader->bottom_size() != 1)
    return shape;
  const Shape& matrix = weights.at(reader->name());
  if (matrix.axes() < 2) return shape;
  const int64_t side = side_for(matrix[matrix.axes() - 1], shape[2],
                                ValuesOfSide(top, shape, layers, *reader, shapes));
  if (side > 0) shape[2] = shape[3] = side;
  return shape;
}

}  // namespace crema
