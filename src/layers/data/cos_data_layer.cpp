// CoSData: rows of a table with a column for each top (CaffeOnSpark). There the table is a
// DataFrame of Spark; here it is in HDF5 files.
//
//   top t [i, ...] = row (n * batch_size + i) mod rows of the dataset with the name of column t
//   where n counts the batches, and the files of the list are concatenated
//
// Shapes: no bottoms; one top for each `top` of the message, (batch_size, channels, height, width)
// with as many of the last three as its sample_num_axes says; with transpose, for one axis,
// (channels, batch_size). A row of a dataset has channels * height * width numbers, whatever its
// axes.
//
// Parameters: cos_data_param: source, a text file with one .h5 file per line; batch_size; for each
// top its column's name, channels, height and width; transform_param, for the first top, whose
// out_channels, out_height and out_width then give its shape. `type`, the type of a column in
// Spark's table, is not needed.
//
// This writes a DataFrame in Python, with images decoded as blue, green, red:
//   with h5py.File("train.h5", "w") as f: f["data"] = images; f["label"] = labels
// In training several ranks share each batch.
//
// Gradient: none.
#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "data/databases/hdf5/hdf5_dataset.h"
#include "data/loader/to_tensor.h"
#include "layers/data/cos_shapes.h"
#include "layers/data/loader_layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class CosDataLayer : public LoaderLayer {
 public:
  Arity tops() const override { return {1, -1}; }

  void setup(Context& context, const std::vector<Shape>&) override {
    require(p().top_size() == message().top_size(), "the layer has ", message().top_size(),
            " tops, but cos_data_param describes ", p().top_size(), " with top { name: ... }");
    require(p().batch_size() > 0, "cos_data_param needs a `batch_size` of at least 1");
    std::vector<std::string> columns;
    for (const CoSDataParameter::Top& top : p().top()) {
      check(top, columns.size());
      columns.push_back(top.name());
    }
    const std::string list = find_file(p().source(), folder());
    require(
        file_exists(list) && !folder_exists(list), "there is no file ", p().source(),
        "; CaffeOnSpark reads a DataFrame there, but here `source` is a text file that lists HDF5 "
        "files with a dataset for each column (crema layers CoSData shows how to write them)");
    context.log().info("Loading list of HDF5 filenames from: " + list);
    source_ = std::make_shared<Hdf5Source>(list, columns);
    for (int i = 0; i < p().top_size(); ++i) {
      const CoSDataParameter::Top& top = p().top(i);
      const int64_t expected =
          int64_t{top.channels()} * std::max(1u, top.height()) * std::max(1u, top.width());
      if (source_->row_shape(i).count() != expected)
        fail("column ", top.name(), " has rows of ", source_->row_shape(i).brief(), " in ", list,
             "'s files, but channels, height and width ask for ", expected, " numbers");
    }
    std::shared_ptr<const Transform> transform;
    if (p().top(0).has_transform_param())
      transform = std::make_shared<Transform>(p().top(0).transform_param(), training(), folder(),
                                              context.log());
    start(context, std::make_shared<Hdf5Dataset>(source_, std::move(transform)),
          loader_options(context, p().batch_size(), 0));
    const Shape made = LoaderLayer::infer({}).tops[0], described = infer({}).tops[0];
    if (made.count() != described.count())
      fail("transform_param makes ", made.brief(), " of column ", p().top(0).name(),
           ", but out_channels, out_height and out_width describe ", described.brief());
  }

  int64_t records() const override { return source_->rows(); }

  Inference infer(const std::vector<Shape>&) const override {
    Inference inference;
    for (const CoSDataParameter::Top& top : p().top())
      inference.tops.push_back(shape_of_column(top, batch_size()));
    return inference;
  }

  Prepared prepare(Context&, const Preparation&) const override {
    Prepared prepared;
    prepared.make_state<TopValues>();
    return prepared;
  }
  void forward(Context& context, const Forward& pass) const override {
    const Batch& batch = this->batch(pass.pass);
    const auto samples = static_cast<size_t>(batch_size());
    const size_t all = batch.labels.size() / samples;
    size_t from = 0;
    std::vector<float>& values = state_of<TopValues>(pass).values;
    for (size_t top = 0; top < pass.top.size(); ++top) {
      const size_t each = static_cast<size_t>(pass.top[top].count()) / samples;
      const bool transposed = p().top(static_cast<int>(top)).transpose();
      values.resize(samples * each);
      for (size_t i = 0; i < samples; ++i) {
        const float* row =
            top == 0 ? batch.data.data() + i * each : batch.labels.data() + i * all + from;
        for (size_t k = 0; k < each; ++k)
          values[transposed ? k * samples + i : i * each + k] = row[k];
      }
      to_tensor(context, values, pass.top[top]);
      if (top > 0) from += each;
    }
  }

 private:
  const CoSDataParameter& p() const { return params<CoSDataParameter>(); }

  static void check(const CoSDataParameter::Top& top, size_t index) {
    require(!top.name().empty(), "top ", index,
            " of cos_data_param needs the `name` of its column");
    require(top.sample_num_axes() <= 3, "sample_num_axes of column ", top.name(), " is ",
            top.sample_num_axes(), "; a sample has at most three axes");
    require(top.channels() > 0, "column ", top.name(), " needs its `channels`");
    require(!top.transpose() || top.sample_num_axes() == 1, "column ", top.name(),
            " has transpose, which is for samples of one axis: sample_num_axes: 1");
    require(index == 0 || !top.has_transform_param(), "column ", top.name(),
            " has a transform_param; only the first one is transformed");
  }

  std::shared_ptr<const Hdf5Source> source_;
};

REGISTER_LAYER(CoSData, CosDataLayer);

}  // namespace
}  // namespace crema
