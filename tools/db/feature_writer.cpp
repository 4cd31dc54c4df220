#include "tools/db/feature_writer.h"

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"
#include "data/databases/npy_writer.h"

namespace crema {
namespace {

// Caffe's records: the axes after the first one are channels, height and width. They have no label,
// except in HDF5 files, where HDF5Data needs it next to the data.
class FeatureDatums : public FeatureWriter {
 public:
  FeatureDatums(const std::string& path, const DatabaseFormat& format)
      : labelled_(format.backend == DataParameter::HDF5), writer_(create_database(path, format)) {}

  void put(const Shape& shape, const std::vector<float>& values,
           const std::vector<float>& labels) override {
    const auto extent = [&](int axis) { return axis < shape.axes() ? shape[axis] : 1; };
    datum_.set_channels(static_cast<int>(extent(1)));
    datum_.set_height(static_cast<int>(extent(2)));
    datum_.set_width(shape.axes() > 3 ? static_cast<int>(shape.count(3)) : 1);
    const int64_t count = shape.count(1), labels_each = static_cast<int64_t>(labels.size()) /
                                                        std::max<int64_t>(1, shape[0]);
    for (int64_t n = 0; n < shape[0]; ++n) {
      const auto first = values.begin() + n * count;
      datum_.mutable_float_data()->Assign(first, first + count);
      if (labelled_ && labels_each > 0) {
        const auto label = labels.begin() + n * labels_each;
        datum_.mutable_labels()->Assign(label, label + labels_each);
      }
      writer_->put(numbered_key(writer_->count(), 10), datum_);
    }
  }
  bool takes_labels() const override { return labelled_; }
  void complete() override { writer_->complete(); }
  void finish() override { writer_->finish(); }
  int64_t count() const override { return writer_->count(); }

 private:
  const bool labelled_;
  std::unique_ptr<DatabaseWriter> writer_;
  Datum datum_;
};

class FeatureArray : public FeatureWriter {
 public:
  FeatureArray(const std::string& path, bool overwrite) : writer_(path, overwrite) {}

  void put(const Shape& shape, const std::vector<float>& values,
           const std::vector<float>&) override {
    writer_.put(shape, values.data());
  }
  void complete() override { writer_.complete(); }
  void finish() override { writer_.finish(); }
  int64_t count() const override { return writer_.count(); }

 private:
  NpyWriter writer_;
};

}  // namespace

FeatureFormat feature_format(const std::string& kind, bool overwrite) {
  const std::string lower = lower_case(kind);
  FeatureFormat format;
  format.database.overwrite = overwrite;
  if (lower == "npy") {
    format.numpy = true;
  } else {
    const std::vector<std::string> kinds = {"lmdb", "leveldb", "hdf5", "npy"};
    require(std::find(kinds.begin(), kinds.end(), lower) != kinds.end(),
            "unknown kind of feature file \"", kind, "\"", did_you_mean(lower, kinds),
            "; there are lmdb, leveldb, hdf5 and npy");
    format.database.backend = backend_named(lower);
  }
  return format;
}

std::string name_of_features(const std::string& path, const FeatureFormat& format) {
  return format.numpy ? name_of_npy(path) : path;
}

std::unique_ptr<FeatureWriter> create_features(const std::string& path,
                                               const FeatureFormat& format) {
  if (format.numpy) return std::make_unique<FeatureArray>(path, format.database.overwrite);
  return std::make_unique<FeatureDatums>(path, format.database);
}

}  // namespace crema
