// Data: samples from an LMDB or LevelDB, repeating endlessly.
//
//   data[i,c,y,x] = transform(image of record (n * batch_size + i) mod records)
//   label[i]      = label of that record; label[i,k] with several labels, Datum.labels
//   where n counts the batches, and transform is crop, mirror and (x - mean) * scale
//
// Shapes: no bottoms; tops data (batch_size, C, H, W), or the crop's height and width, and, if a
// second top is named, label (batch_size), or (batch_size, L) for L > 1 labels in each record.
//
// Parameters: data_param: source, the folder of the database; backend, by default LEVELDB;
// batch_size; prefetch, number of batches prepared ahead; shuffle, a new order in every epoch;
// rand_skip; threads, 0 for automatic. transform_param.
//
// Records come in the order of their keys. In training several ranks take records in turn. The
// first record determines the shape; others must have the same, unless they are cropped or
// batch_size is 1: then the net follows each one's height and width.
//
// Gradient: none.
#include "base/error.h"
#include "base/files.h"
#include "data/databases/resident.h"
#include "layers/data/loader_layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class DataLayer : public LoaderLayer {
 public:
  bool works_on_host() const override { return !resident_; }
  bool makes_any_format() const override { return resident_ != nullptr; }

  void open(Context& context) override { source_ = open_source(context); }

  void setup(Context& context, const std::vector<Shape>&) override {
    const DataParameter& data = params<DataParameter>();
    const TransformationParameter& fields = params<TransformationParameter>();
    const auto records = std::make_shared<Records>(
        source_, Transform(fields, training(), folder(), context.log()), message().top_size() > 1);
    if (!records->decodes() && (fields.force_color() || fields.force_gray())) {
      context.log().warning("force_color and force_gray only for encoded datum");
    }
    const LoaderOptions options = database_options(context);
    start(context, records, options);
    // LevelDB would have to iterate over all of its keys to count them.
    records_ = data.backend() == DataParameter::LMDB ? source_->size() : 0;
    if (records_ > 0 && context.resident)
      resident_ = ResidentData::load(context, *records, options, free_memory(context) / 4);
  }

  int64_t records() const override { return records_; }
  size_t resident_bytes() const override { return resident_ ? resident_->bytes() : 0; }
  void release_resident() override { resident_.reset(); }

  Prepared prepare(Context&, const Preparation& preparation) override {
    if (preparation.dtype != DType::f32) resident_.reset();
    return {};
  }

  bool reshapes(uint64_t pass) override {
    if (!resident_) return LoaderLayer::reshapes(pass);
    say_restart(static_cast<int64_t>(pass), resident_->epoch(pass));
    return false;
  }

  void forward(Context& context, const Forward& pass) override {
    if (!resident_) return LoaderLayer::forward(context, pass);
    resident_->batch(context, pass.pass, pass.live_pass, pass.top[0],
                     pass.top.size() > 1 ? pass.top[1] : Tensor());
  }

 private:
  std::shared_ptr<const Source> source_;
  std::unique_ptr<ResidentData> resident_;  // in GPU memory; the loader then makes no batches
  int64_t records_ = 0;
};

REGISTER_LAYER(Data, DataLayer);

}  // namespace
}  // namespace crema
