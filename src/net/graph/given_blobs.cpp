#include "net/graph/given_blobs.h"

#include "base/error.h"
#include "layers/layer.h"
#include "proto/blob.pb.h"
#include "proto/layer.pb.h"
#include "tensor/shape_limits.h"

namespace crema {

Shape without_leading_ones(const Shape& shape) {
  size_t first = 0;
  while (first < shape.dims().size() && shape.dims()[first] == 1) ++first;
  return Shape(std::vector<int64_t>(shape.dims().begin() + static_cast<std::ptrdiff_t>(first),
                                    shape.dims().end()));
}

GivenBlob given_blob(const BlobProto& blob) {
  GivenBlob given;
  require(blob.data_size() == 0 || blob.double_data_size() == 0, "has ", blob.data_size(),
          " values of data and ", blob.double_data_size(), " of double_data: give one of the two");
  given.values.assign(blob.data().begin(), blob.data().end());
  given.values.insert(given.values.end(), blob.double_data().begin(), blob.double_data().end());
  if (blob.has_shape()) {
    given.shape = Shape(std::vector<int64_t>(blob.shape().dim().begin(), blob.shape().dim().end()));
  } else if (blob.has_num() || blob.has_channels() || blob.has_height() || blob.has_width()) {
    given.shape = Shape{blob.num(), blob.channels(), blob.height(), blob.width()};
    given.four_axes = true;
  }
  if (!given.shape) return given;
  require(given.shape->axes() <= kMaxBlobAxes, "has ", given.shape->axes(),
          " axes, but a blob can have at most ", kMaxBlobAxes);
  for (const int64_t extent : given.shape->dims())
    require(extent > 0, "has the shape ", given.shape->brief(),
            ", but each extent must be at least 1");
  require(at_most(*given.shape, kMaxValues), "has the impossible shape ", given.shape->brief());
  require(given.shape->count() == static_cast<int64_t>(given.values.size()), "has the shape ",
          given.shape->brief(), ", which takes ", given.shape->count(), " values, but data gives ",
          given.values.size());
  return given;
}

void set_blob(const Shape& shape, const std::vector<float>& values, BlobProto* blob) {
  blob->Clear();
  for (const int64_t extent : shape.dims()) blob->mutable_shape()->add_dim(extent);
  blob->mutable_data()->Add(values.begin(), values.end());
}

void check_given_blobs(const LayerParameter& message, size_t parameters) {
  const auto given = static_cast<size_t>(message.blobs_size());
  require(given == 0 || given == parameters, "blobs is given ", given,
          given == 1 ? " time" : " times", ", but type ", message.type(), " has ", parameters,
          " parameters here: give the values of ", "all of them, or no blobs");
}

std::vector<float> given_values(const LayerParameter& message, int k, const Shape& shape) {
  GivenBlob given = given_blob(message.blobs(k));
  const Shape found = given.shape.value_or(Shape{static_cast<int64_t>(given.values.size())});
  bool fits = found == shape;
  if (!given.shape) fits = found.count() == shape.count();
  if (given.four_axes) fits = without_leading_ones(found) == without_leading_ones(shape);
  require(fits, "blobs ", k, " has ",
          given.shape ? cat("the shape ", found.brief()) : cat(found.count(), " values"),
          ", but parameter ", k, " of this layer has the shape ", shape.brief());
  return std::move(given.values);
}

}  // namespace crema
