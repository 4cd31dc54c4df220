#include "data/databases/hdf5/hdf5_rows.h"

#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "data/databases/database_writer.h"
#include "data/databases/hdf5/hdf5_file.h"
#include "data/databases/hdf5/hdf5_source.h"

namespace crema {
namespace {

std::vector<std::string> datasets_of(const std::string& path) {
  std::string first = path;
  if (!is_hdf5(path)) {
    for (const std::string& line : split(read_text(path), '\n')) {
      const std::string_view entry = trim(line);
      if (entry.empty()) continue;
      first = find_file(std::string(entry), folder_of(path));
      break;
    }
  }
  const Hdf5File file(first);
  require(file.has("data"), first, ": has no dataset \"data\"");
  if (file.has("label")) return {"data", "label"};
  return {"data"};
}

class Hdf5Rows : public Source {
 public:
  Hdf5Rows(const std::string& path, const std::vector<std::string>& datasets)
      : Source(path), labelled_(datasets.size() > 1), rows_(path, datasets) {
    const Shape& shape = rows_.row_shape(0);
    require(shape.axes() >= 1 && shape.axes() <= 3, path, ": a row of \"data\" has ", shape.axes(),
            " axes; a record has 1 to 3, channels, height and width");
  }

  int64_t size() const override { return rows_.rows(); }
  std::string key(int64_t index) const override { return numbered_key(index, 8); }

  void read(int64_t index, google::protobuf::Message& record) const override {
    auto* datum = dynamic_cast<Datum*>(&record);
    require(datum != nullptr, "HDF5 files hold rows of numbers, no ",
            record.GetDescriptor()->name());
    const Hdf5Source::Row row = rows_.locate(index);
    const Shape& shape = rows_.row_shape(0);
    const auto extent = [&](int axis) {
      return static_cast<int>(axis < shape.axes() ? shape[axis] : 1);
    };
    datum->Clear();
    datum->set_channels(extent(0));
    datum->set_height(extent(1));
    datum->set_width(extent(2));
    const Hdf5Blocks::Values values = rows_.at(row, 0);
    datum->mutable_float_data()->Assign(values.get(), values.get() + shape.count());
    if (!labelled_) return;
    const Hdf5Blocks::Values labels = rows_.at(row, 1);
    const int64_t count = rows_.row_shape(1).count();
    constexpr float kExact = 1 << 24;
    if (count == 1 && labels[0] == std::floor(labels[0]) && std::abs(labels[0]) <= kExact) {
      datum->set_label(static_cast<int>(labels[0]));
    } else {
      datum->mutable_labels()->Assign(labels.get(), labels.get() + count);
    }
  }

 private:
  const bool labelled_;
  const Hdf5Source rows_;
};

}  // namespace

std::unique_ptr<Source> open_hdf5_rows(const std::string& path) {
  return std::make_unique<Hdf5Rows>(path, datasets_of(path));
}

}  // namespace crema
