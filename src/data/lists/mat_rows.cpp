#include "data/lists/mat_rows.h"

#include "base/error.h"
#include "base/files.h"
#include "data/lists/mat_file.h"

namespace crema {
namespace {

constexpr size_t kBlobAxes = 4;

MatArray read_blob(const std::string& path) {
  const std::string file = read_file(path);
  try {
    MatArray array = read_mat(file, "data");
    require(array.extents.size() <= kBlobAxes, "variable data has ", array.extents.size(),
            " axes; a blob has four: width, height, channels and images");
    array.extents.resize(kBlobAxes, 1);
    require(array.extents.back() == 1, "variable data has ", array.extents.back(),
            " images on its fourth axis; MatRead reads one from a file, and batch_size joins them");
    return array;
  } catch (const Error& problem) {
    fail(path, ": ", problem.what());
  }
}

Shape shape_of(const MatArray& array) {
  return {array.extents[2], array.extents[1], array.extents[0]};
}

Shape shape_of_labels(const std::vector<Shape>& shapes) {
  int64_t count = 0;
  for (size_t i = 1; i < shapes.size(); ++i) count += shapes[i].count();
  return shapes.size() == 1 ? Shape() : Shape{count};
}

}  // namespace

Shape shape_of_mat(const std::string& path) { return shape_of(read_blob(path)); }

MatRows::MatRows(int64_t samples, std::vector<Shape> shapes, FindMat find)
    : RowDataset(shapes.at(0), shape_of_labels(shapes), nullptr),
      samples_(samples),
      shapes_(std::move(shapes)),
      find_(std::move(find)) {}

void MatRows::read(int64_t sample, size_t array, float* to) const {
  const std::string path = find_(sample, array);
  const MatArray found = read_blob(path);
  require(shape_of(found) == shapes_[array], path, ": is ", shape_of(found).brief(),
          ", but the array of the first name is ", shapes_[array].brief(),
          "; all must have one shape");
  for (const double value : found.values) *to++ = static_cast<float>(value);
}

std::shared_ptr<const float[]> MatRows::row(int64_t record) const {
  const std::shared_ptr<float[]> values(new float[static_cast<size_t>(shapes_[0].count())]);
  read(record, 0, values.get());
  return values;
}

void MatRows::read_labels(int64_t record, std::vector<float>& labels) const {
  labels.resize(shapes_.size() == 1 ? 1 : static_cast<size_t>(shape_of_labels(shapes_).count()));
  float* to = labels.data();
  for (size_t i = 1; i < shapes_.size(); ++i) {
    read(record, i, to);
    to += shapes_[i].count();
  }
}

}  // namespace crema
