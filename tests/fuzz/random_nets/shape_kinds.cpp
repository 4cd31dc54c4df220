#include "base/error.h"
#include "fuzz/random_nets/layer_kinds.h"

namespace crema::tests {
namespace {

using Blobs = std::vector<int>;

Blobs concat(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() < 2) return {};
  // Along the batch, the samples of ranks are in another order: a Dropout draws others.
  const int axis = w.maybe(70) ? 1 : w.between(w.for_ranks, shape.axes() - 1);
  Blobs bottoms{b};
  int64_t count = shape.count();
  for (int more = w.between(1, 3); more > 0; --more) {
    const int other = w.find([&](int i) {
      Shape same = w.shape(i);
      if (same.axes() != shape.axes() || count + same.count() > kMaxCount) return false;
      if (std::find(bottoms.begin(), bottoms.end(), i) != bottoms.end()) return false;
      same[axis] = shape[axis];
      return same == shape;
    });
    if (other < 0) continue;
    bottoms.insert(bottoms.begin() + w.between(0, static_cast<int>(bottoms.size())), other);
    count += w.shape(other).count();
  }
  if (bottoms.size() == 1 && w.maybe(50)) return {};
  if (count + shape.count() <= kMaxCount && w.maybe(6)) bottoms.push_back(b);
  return {w.add("Concat", bottoms, axis == 1 ? "" : cat("concat_param { axis: ", axis, " }"))};
}
Blobs slice(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  const int axis = w.maybe(80) ? 1 : w.between(w.for_ranks ? 1 : 0, shape.axes() - 1);
  if (axis >= shape.axes() || shape[axis] < 2) return {};
  const int point = w.between(1, static_cast<int>(shape[axis]) - 1);
  const int first =
      w.add("Slice", {b}, cat("slice_param { axis: ", axis, " slice_point: ", point, " }"), 2);
  if (w.maybe(15)) return {first};  // the other part stays an output
  return {first, first + 1};
}
Blobs split(NetWriter& w, int b) {
  const int first = w.add("Split", {b}, "", 2);
  return {first, first + 1};
}
Blobs flatten(NetWriter& w, int b) {
  const int axes = w.shape(b).axes();
  if (axes < 3) return {};
  if (w.maybe(70)) return {w.add("Flatten", {b})};
  return {
      w.add("Flatten", {b},
            w.maybe(50) ? "flatten_param { axis: 2 }" : "flatten_param { axis: 1 end_axis: 2 }")};
}
Blobs reshape(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() == 2) {
    const int64_t rows = shape[1] % 4 == 0 ? 2 : 1;
    if (shape[1] < 4 || w.maybe(30))
      return {w.add("Reshape", {b}, "reshape_param { shape { dim: 1 } axis: 2 num_axes: 0 }")};
    const int64_t columns = shape[1] % (2 * rows) == 0 ? 2 : 1;
    return {w.add(
        "Reshape", {b},
        cat("reshape_param { shape { dim: 0 dim: -1 dim: ", rows, " dim: ", columns, " } }"))};
  }
  if (shape.axes() < 3) return {};
  if (w.maybe(40)) return {w.add("Reshape", {b}, "reshape_param { shape { dim: 0 dim: -1 } }")};
  if (w.maybe(20)) {  // places become samples
    const int moved =
        w.add("Permute", {b},
              shape.axes() == 4 ? "permute_param { order: 0 order: 2 order: 3 order: 1 }"
                                : "permute_param { order: 0 order: 2 order: 1 }");
    const int64_t channels = w.shape(moved)[w.shape(moved).axes() - 1];
    return {
        w.add("Reshape", {moved}, cat("reshape_param { shape { dim: -1 dim: ", channels, " } }"))};
  }
  if (w.maybe(15))  // as if the second axis were the batch
    return {w.add("Reshape", {b}, cat("reshape_param { shape { dim: ", shape[1], " dim: -1 } }"))};
  return {w.add("Reshape", {b}, "reshape_param { shape { dim: -1 } axis: 2 }")};
}
Blobs permute(NetWriter& w, int b) {
  const int axes = w.shape(b).axes();
  if (axes < 3) return {};
  std::vector<int> order;
  for (int i = 1; i < axes; ++i)
    order.insert(order.begin() + w.between(0, static_cast<int>(order.size())), i);
  const bool moves_batch = w.maybe(8);
  order.insert(order.begin() + (moves_batch ? 1 : 0), 0);
  std::string text = "permute_param {";
  for (const int axis : order) text += cat(" order: ", axis);
  return {w.add("Permute", {b}, text + " }")};
}
Blobs reverse(NetWriter& w, int b) {
  const int axes = w.shape(b).axes();
  if (axes < 2) return {};
  return {
      w.add("Reverse", {b}, cat("reverse_param { axis: ", w.between(w.maybe(80), axes - 1), " }"))};
}
Blobs tile(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() < 2 || shape.count() > kMaxCount / 3) return {};
  return {w.add("Tile", {b},
                cat("tile_param { axis: ", w.between(1, shape.axes() - 1),
                    " tiles: ", w.between(2, 3), " }"))};
}
Blobs reduction(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() < 2) return {};
  const char* const operations[] = {"SUM", "ASUM", "SUMSQ", "MEAN"};
  const int axis = w.between(1, shape.axes() - 1);
  const char* const operation = operations[w.between(0, 3)];
  return {w.add("Reduction", {b},
                cat("reduction_param { operation: ", operation, " axis: ", axis,
                    " coeff: ", w.number(0.2, 1), " }"))};
}
Blobs crop(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (!is_image(shape) || shape[2] < 2 || shape[3] < 2) return {};
  int like = w.find([&](int i) {
    const Shape& small = w.shape(i);
    return i != b && is_image(small) && small[2] <= shape[2] && small[3] <= shape[3] &&
           small[0] == shape[0];
  });
  if (like < 0) like = w.normal({shape[0], 1, shape[2] - 1, shape[3] - 1});
  const Shape small = w.shape(like);
  return {w.add(
      "Crop", {b, like},
      cat("crop_param { axis: 2 offset: ", w.between(0, static_cast<int>(shape[2] - small[2])),
          " offset: ", w.between(0, static_cast<int>(shape[3] - small[3])), " }"))};
}
Blobs batch_reindex(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() < 2 || shape[0] < 2 || w.for_ranks) return {};
  const int column = w.labels({w.batch}, static_cast<int>(shape[0]));
  const int index = w.add("Reshape", {column}, "reshape_param { shape { dim: -1 } }");
  return {w.add("BatchReindex", {b, index})};
}
Blobs batch_reduction(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() < 3) return {};
  return {w.add("BatchReduction", {b},
                "batch_reduction_param { reduction_param { operation: MEAN axis: 1 } }")};
}
// Some of the samples, chosen by other data.
Blobs filter(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() < 2 || w.for_ranks) return {};
  const int selector = w.labels({shape[0]}, 2);
  const int top = w.add("Filter", {b, selector});
  return {w.add("Reduction", {top}, "reduction_param { operation: MEAN }")};
}

}  // namespace

const std::vector<LayerKind>& shape_kinds() {
  static const std::vector<LayerKind> kinds = {
      {"Concat", 24, concat},
      {"Slice", 12, slice},
      {"Split", 3, split},
      {"Flatten", 6, flatten},
      {"Reshape", 8, reshape},
      {"Permute", 8, permute},
      {"Reverse", 2, reverse},
      {"Tile", 4, tile},
      {"Reduction", 5, reduction},
      {"Crop", 6, crop},
      {"BatchReindex", 2, batch_reindex},
      {"BatchReduction", 2, batch_reduction},
      {"Filter", 1, filter},
  };
  return kinds;
}

}  // namespace crema::tests
