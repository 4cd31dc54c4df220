#include "data/mean.h"

#include <google/protobuf/unknown_field_set.h>

#include "base/error.h"
#include "base/files.h"
#include "data/record.h"
#include "proto/blob.pb.h"
#include "tensor/claims.h"

namespace crema {

std::vector<float> Mean::channels() const {
  // Sums in float32 as Caffe's do, so that the printed digits are the same.
  std::vector<float> means(static_cast<size_t>(shape[0]));
  const int64_t plane = shape.count(1);
  for (int64_t i = 0; i < shape.count(); ++i) means[i / plane] += values[i];
  for (float& mean : means) mean /= static_cast<float>(plane);
  return means;
}

namespace {

// C3D's first files number the fields of a blob otherwise: the length of clips is the third one,
// all behind it one further.
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
  require(blob.ParseFromString(read_file(path)), path, ": is not a mean file (a binary BlobProto)");
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
  require(one, path, ": a mean file holds one image or clip, but this one has the shape ",
          mean.shape.brief(), " and ", values, " values");
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

Mean compute_mean(const Source& source, Log& log) {
  log.info("Starting iteration");
  Mean mean;
  std::vector<double> sums;
  Record record;
  const int64_t count = source.size();
  for (int64_t index = 0; index < count; ++index) {
    try {
      source.read(index, record.datum);
      decode(record, Color::as_stored);
      if (index == 0) {
        mean.shape = record.shape();
        sums.resize(mean.shape.count());
      }
      if (record.shape() != mean.shape) {
        fail("its shape ", record.shape().brief(), " is not ", mean.shape.brief(),
             ", that of the first record; a mean needs images of one size: convert them with "
             "-resize_height and -resize_width");
      }
    } catch (const Error& problem) {
      fail(source.describe(index), ": ", problem.what());
    }
    const int64_t plane = record.height * record.width;
    for (int64_t c = 0; c < record.channels; ++c) {
      double* sum = sums.data() + c * plane;
      const int64_t first = record.interleaved ? c : c * plane,
                    step = record.interleaved ? record.channels : 1;
      for (int64_t i = 0; i < plane; ++i) {
        const int64_t at = first + i * step;
        sum[i] += record.bytes ? static_cast<double>(record.bytes[at])
                               : static_cast<double>(record.values[at]);
      }
    }
    if ((index + 1) % 10000 == 0) log.info(cat("Processed ", index + 1, " files."));
  }
  if (count % 10000 != 0) log.info(cat("Processed ", count, " files."));
  for (const double sum : sums)
    mean.values.push_back(static_cast<float>(sum) / static_cast<float>(count));
  return mean;
}

}  // namespace crema
