// HDF5Data: rows of datasets in HDF5 files, repeating endlessly.
//
//   top[i, ...] = row (n * batch_size + i) mod rows of the dataset that has the top's name
//   where n counts the batches, and the files of the list are concatenated
//
// Shapes: no bottoms; at least one top, each (batch_size, the dataset's remaining axes); the first
// one's height and width are those of transform_param's crop.
//
// Parameters: hdf5_data_param: source, a text file with one .h5 file per line; batch_size; shuffle,
// a new order of the files, and of the rows inside each, in every epoch; prefetch, number of
// batches prepared ahead; threads, 0 for automatic. transform_param, for the first top if its rows
// are channels, rows and columns; augment needs whole numbers from 0 to 255.
//
// Integers and doubles are converted to the net's real type. In training several ranks share each
// batch. Files need not fit into memory: at most 1 GiB of rows is kept, and a larger file is read
// in blocks, chosen by its chunks. Then shuffle takes the blocks in random order and permutes the
// rows of those that are in memory together. With balance: true the classes of the second top are
// equally frequent in training, as for Data; since it reads rows in any order, files larger than
// that memory are slow.
//
// Gradient: none.
#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "data/databases/hdf5/hdf5_dataset.h"
#include "data/loader/to_tensor.h"
#include "layers/data/loader_layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class Hdf5DataLayer : public LoaderLayer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::source,
                                       .content = SourceContent::numbers};

  Arity tops() const override { return {1, -1}; }

  void setup(Context& context, const std::vector<Shape>&) override {
    const HDF5DataParameter& data = params<HDF5DataParameter>();
    require(!data.source().empty(),
            "hdf5_data_param needs a `source`: a text file that lists HDF5 files");
    require(data.batch_size() > 0, "hdf5_data_param needs a `batch_size` of at least 1");
    const std::string list = find_file(data.source(), folder());
    context.log().info("Loading list of HDF5 filenames from: " + list);
    source_ = std::make_shared<Hdf5Source>(
        list, std::vector<std::string>(message().top().begin(), message().top().end()));
    context.log().info(cat("Number of HDF5 files: ", source_->files()));
    std::shared_ptr<const Transform> transform;
    if (has_params<TransformationParameter>())
      transform = std::make_shared<Transform>(params<TransformationParameter>(), training(),
                                              folder(), context.log());
    LoaderOptions options = loader_options(context, data.batch_size(), 0);
    options.shuffle = data.shuffle();
    options.prefetch = static_cast<int>(data.prefetch());
    options.workers = static_cast<int>(data.threads());
    start(context, std::make_shared<Hdf5Dataset>(source_, std::move(transform)), options);
  }

  int64_t records() const override { return source_->rows(); }

  // The loader has one array for all labels; here each is a top.
  Inference infer(const std::vector<Shape>& bottoms) const override {
    Inference inference = LoaderLayer::infer(bottoms);
    if (message().top_size() < 3) return inference;
    inference.tops.resize(1);
    for (int i = 1; i < message().top_size(); ++i) {
      std::vector<int64_t> dims = source_->row_shape(i).dims();
      dims.insert(dims.begin(), batch_size());
      inference.tops.emplace_back(dims);
    }
    return inference;
  }

  Prepared prepare(Context&, const Preparation&) const override {
    Prepared prepared;
    prepared.make_state<TopValues>();
    return prepared;
  }
  void forward(Context& context, const Forward& pass) const override {
    if (message().top_size() < 3) return LoaderLayer::forward(context, pass);
    const Batch& batch = this->batch(pass.pass);
    to_tensor(context, batch.data, pass.top[0]);
    write_further_tops(context, batch, pass);
  }

 protected:
  bool has_classes() const override {
    return message().top_size() == 2 && source_->row_shape(1).count() == 1;
  }

 private:
  std::shared_ptr<const Hdf5Source> source_;
};

REGISTER_LAYER(HDF5Data, Hdf5DataLayer);

}  // namespace
}  // namespace crema
