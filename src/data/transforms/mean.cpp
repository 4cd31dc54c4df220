#include "data/transforms/mean.h"

#include <google/protobuf/unknown_field_set.h>

#include "base/error.h"
#include "base/file_kind.h"
#include "base/files.h"
#include "proto/blob.pb.h"
#include "tensor/shape_limits.h"

namespace crema {

std::vector<float> Mean::channels() const {
  // Sums in float32 as Caffe's, so that the printed digits agree.
  std::vector<float> means(static_cast<size_t>(shape[0]));
  const int64_t plane = shape.count(1);
  for (int64_t i = 0; i < shape.count(); ++i) means[i / plane] += values[i];
  for (float& mean : means) mean /= static_cast<float>(plane);
  return means;
}

namespace {

// C3D's first files number the fields of a blob differently: the length of clips is the third
// field, and all later ones have numbers one higher.
void read_clip_mean(BlobProto& blob) {
  const auto& others = blob.GetReflection()->GetUnknownFields(blob);
  constexpr int kWidth = 5;
  if (blob.data_size() > 0 || blob.diff_size() == 0 || others.field_count() != 1 ||
      others.field(0).number() != kWidth ||
      others.field(0).type() != google::protobuf::UnknownField::TYPE_VARINT)
    return;
  for (const int64_t extent :
       {static_cast<int64_t>(blob.num()), static_cast<int64_t>(blob.channels()),
        static_cast<int64_t>(blob.height()), static_cast<int64_t>(blob.width()),
        static_cast<int64_t>(others.field(0).varint())})
    blob.mutable_shape()->add_dim(extent);
  blob.mutable_data()->Swap(blob.mutable_diff());
}

}  // namespace

Mean read_mean(const std::string& path) {
  BlobProto blob;
  if (!blob.ParseFromString(read_file(path)))
    fail(path, ": is not a mean file (a binary BlobProto)", what_it_is(file_kind(path)));
  read_clip_mean(blob);
  std::vector<int64_t> dims(blob.shape().dim().begin(), blob.shape().dim().end());
  if (dims.empty()) {
    for (const int extent : {blob.num(), blob.channels(), blob.height(), blob.width()})
      dims.push_back(extent);
  }
  const size_t axes = dims.size() == 5 ? 4 : 3;  // of a clip, or of an image
  std::ptrdiff_t ones = 0;
  while (dims.size() - ones > axes && dims[ones] == 1) ++ones;
  dims.erase(dims.begin(), dims.begin() + ones);
  while (dims.size() < 3) dims.insert(dims.begin(), 1);
  Mean mean;
  mean.shape = Shape(dims);
  mean.values.assign(blob.data().begin(), blob.data().end());
  if (mean.values.empty()) mean.values.assign(blob.double_data().begin(), blob.double_data().end());
  const auto values = static_cast<int64_t>(mean.values.size());
  const bool one = dims.size() == axes && at_most(mean.shape, values) && values > 0 &&
                   mean.shape.count() == values;
  const FileKind kind = one ? FileKind() : file_kind(path);
  const std::string other = kind.what == kMeanKind ? "" : what_it_is(kind);
  require(one, path, ": a mean file holds one image or clip, but this one has the shape ",
          mean.shape.brief(), " and ", values, " values", other);
  return mean;
}

void write_mean(const Mean& mean, const std::string& path) {
  BlobProto blob;
  blob.set_num(1);
  blob.set_channels(static_cast<int>(mean.shape[0]));
  blob.set_height(static_cast<int>(mean.shape[1]));
  blob.set_width(static_cast<int>(mean.shape[2]));
  blob.mutable_data()->Add(mean.values.begin(), mean.values.end());
  write_file_atomically(path, blob.SerializeAsString());
}

}  // namespace crema
