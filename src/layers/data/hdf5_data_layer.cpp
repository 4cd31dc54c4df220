// HDF5Data: rows of datasets in HDF5 files, repeating endlessly.
//
//   top[i, ...] = row (n * batch_size + i) mod rows of the dataset that has the top's name
//   where n counts the batches, and the files of the list are concatenated
//
// Shapes: no bottoms; at least one top, each (batch_size, the dataset's remaining axes).
//
// Parameters: hdf5_data_param: source, a text file with one .h5 file per line; batch_size; shuffle,
// a new order of the files, and of the rows inside each, in every epoch.
//
// Integers and doubles are converted to the net's real type. transform_param is an error: the files
// hold what the net reads. In training several ranks take rows in turn.
//
// Gradient: none.
#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "data/databases/hdf5_source.h"
#include "data/loader/to_tensor.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class Hdf5DataLayer : public Layer {
 public:
  Arity bottoms() const override { return {0, 0}; }
  Arity tops() const override { return {1, -1}; }
  bool works_on_host() const override { return true; }

  void setup(Context& context, const std::vector<Shape>&) override {
    const HDF5DataParameter& data = params<HDF5DataParameter>();
    require(!has_params<TransformationParameter>(),
            "HDF5Data does not transform its data: transform_param has no effect here; "
            "store the data as the net should read it");
    require(!data.source().empty(),
            "hdf5_data_param needs a `source`: a text file that lists HDF5 files");
    require(data.batch_size() > 0, "hdf5_data_param needs a `batch_size` of at least 1");
    const std::string list = find_file(data.source(), folder());
    context.log().info("Loading list of HDF5 filenames from: " + list);
    source_ = std::make_unique<Hdf5Source>(
        list, std::vector<std::string>(message().top().begin(), message().top().end()));
    context.log().info(cat("Number of HDF5 files: ", source_->files()));
  }

  int64_t records() const override { return source_->rows(); }

  Inference infer(const std::vector<Shape>&) const override {
    std::vector<Shape> tops;
    for (int i = 0; i < message().top_size(); ++i) {
      std::vector<int64_t> dims = source_->row_shape(i).dims();
      dims.insert(dims.begin(), params<HDF5DataParameter>().batch_size());
      tops.emplace_back(dims);
    }
    return {tops, {}};
  }

  void forward(Context& context, const Forward& pass) override {
    const HDF5DataParameter& data = params<HDF5DataParameter>();
    const int64_t batch = data.batch_size();
    // As in Caffe, ranks take rows in turn in training; each test net runs on all rows.
    const int64_t ranks = training() ? context.ranks : 1, rank = training() ? context.rank : 0;
    values_.resize(pass.top.size());
    for (size_t top = 0; top < pass.top.size(); ++top) values_[top].resize(pass.top[top].count());
    for (int64_t i = 0; i < batch; ++i) {
      const int64_t position = (static_cast<int64_t>(pass.pass) * batch + i) * ranks + rank;
      const Hdf5Source::Row row = source_->locate(position, data.shuffle(), context.random(id()));
      for (size_t top = 0; top < pass.top.size(); ++top) {
        const int64_t count = source_->row_shape(static_cast<int>(top)).count();
        std::copy_n(source_->at(row, static_cast<int>(top)), count,
                    values_[top].begin() + i * count);
      }
    }
    for (size_t top = 0; top < pass.top.size(); ++top)
      to_tensor(context, values_[top], pass.top[top]);
  }

 private:
  std::unique_ptr<Hdf5Source> source_;
  std::vector<std::vector<float>> values_;  // one batch per top
};

REGISTER_LAYER(HDF5Data, Hdf5DataLayer);

}  // namespace
}  // namespace crema
