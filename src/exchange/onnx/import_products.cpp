#include "exchange/onnx/import_products.h"

#include <numeric>

#include "exchange/onnx/operators/broadcast.h"
#include "proto/params/pointwise.pb.h"
#include "proto/params/shape.pb.h"

namespace crema {

namespace {

// The limit for single products: several blobs hold them, and 64 million take 256 MB each.
constexpr int64_t kMaxProducts = int64_t{1} << 26;

// a (..., M, K) times b (..., K, N): both become (..., M, N, K), and the sum runs over the last axis.
class ProductWriter {
 public:
  ProductWriter(ImportGraph& graph, const LayerParameter& product)
      : graph_(graph), name_(product.name()), top_(product.top(0)) {
    const Shape a = graph.shape_of(product.bottom(0)), b = graph.shape_of(product.bottom(1));
    wanted_ = graph.shape_of(top_);
    const int64_t inner = a[a.axes() - 1];
    require(wanted_.count() <= kMaxProducts / inner,
            "no layer multiplies two computed matrices, except as part of MultiHeadAttention, and ",
            wanted_.count(), " sums of ", inner, " products are too many to write out");
    wanted_.push_back(inner);
  }

  void write(const std::string& a, const std::string& b) {
    const int axes = wanted_.axes();
    const std::string left = stretched(with_axis(a, axes - 2));
    const std::string right = stretched(with_axis(turned(b), axes - 3));
    const std::string products =
        add("Eltwise", {left, right}, "eltwise", [](LayerParameter* layer) {
          layer->mutable_eltwise_param()->set_operation(EltwiseParameter::PROD);
        });
    graph_.release_layer(name_);
    graph_.add("Reduction", graph_.unique_layer(name_), {products}, {top_},
               [&](LayerParameter* layer) { layer->mutable_reduction_param()->set_axis(axes - 1); },
               {});
  }

 private:
  std::string add(const char* type, const std::vector<std::string>& bottoms, const char* what,
                  const FillLayer& fill) {
    const std::string wish = cat(name_, "/", what), top = graph_.unique_blob(wish);
    graph_.add(type, graph_.unique_layer(wish), bottoms, {top}, fill, {});
    return top;
  }
  std::string turned(const std::string& b) {
    std::vector<uint32_t> order(graph_.shape_of(b).axes());
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    return add("Permute", {b}, "permute", [&](LayerParameter* layer) {
      for (const uint32_t axis : order) layer->mutable_permute_param()->add_order(axis);
    });
  }
  // Reshapes x to the axes of the products, with a new axis of extent 1 at this position.
  std::string with_axis(const std::string& x, int position) {
    const Shape from = graph_.shape_of(x);
    std::vector<int64_t> extents = from.dims();
    extents.insert(extents.begin(), wanted_.axes() - 1 - from.axes(), 1);
    extents.insert(extents.begin() + position, 1);
    return add("Reshape", {x}, "reshape", [&](LayerParameter* layer) {
      BlobShape* const shape = layer->mutable_reshape_param()->mutable_shape();
      const bool keeps_batch = extents[0] == from[0];
      for (size_t axis = 0; axis < extents.size(); ++axis)
        shape->add_dim(axis == 0 && keeps_batch ? 0 : extents[axis]);
    });
  }
  std::string stretched(std::string x) {
    for (int axis = 0; axis < wanted_.axes(); ++axis) {
      const int64_t copies = wanted_[axis] / graph_.shape_of(x)[axis];
      if (copies == 1) continue;
      x = add("Tile", {x}, "tile", [&](LayerParameter* layer) {
        layer->mutable_tile_param()->set_axis(axis);
        layer->mutable_tile_param()->set_tiles(static_cast<int32_t>(copies));
      });
    }
    return x;
  }

  ImportGraph& graph_;
  const std::string name_, top_;
  Shape wanted_;  // (..., M, N, K)
};

}  // namespace

void write_out_products(ImportGraph& graph) {
  std::vector<ImportedLayer> layers = std::move(graph.layers);
  graph.layers.clear();
  int64_t written = 0;
  for (ImportedLayer& layer : layers) {
    if (layer.message.type() != "MatMul") {
      graph.layers.push_back(std::move(layer));
      continue;
    }
    const LayerParameter product = layer.message;
    graph.node = layer.node;
    try {
      ProductWriter(graph, product).write(product.bottom(0), product.bottom(1));
      ++written;
    } catch (const Error& error) {
      layer.unsupported = error.what();
      graph.layers.push_back(std::move(layer));
    }
  }
  if (written > 0) {
    graph.notes.insert(
        cat("No layer multiplies two computed matrices outside of MultiHeadAttention: ", written,
            " products are written out, which takes time and memory."));
  }
}

}  // namespace crema
