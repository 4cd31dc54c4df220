// Data: samples of an LMDB or LevelDB, batch after batch, for ever.
//
//   data[i,c,y,x] = transform(image of record (n * batch_size + i) mod records)
//   label[i]      = label of that record
//   where n counts the batches, and transform is crop, mirror and (x - mean) * scale
//
// Shapes: no bottoms; tops data (batch_size, C, H, W), or the crop's height and width, and, when
// a second top is named, label (batch_size).
//
// Parameters: data_param: source, the folder of the database; backend, LEVELDB unless written;
// batch_size; prefetch, batches made ahead; shuffle, a new order in every epoch; rand_skip;
// threads, 0 decides by itself. transform_param.
//
// Records come in the order of their keys. With several ranks each takes its share in turn, in
// training. The first record decides the shape; others must have the same, unless they are cropped
// or batch_size is 1: then the net follows the height and width of each.
//
// Gradient: none.
#include "base/error.h"
#include "base/files.h"
#include "data/loader.h"
#include "data/resident.h"
#include "data/to_tensor.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class DataLayer : public Layer {
 public:
  Arity bottoms() const override { return {0, 0}; }
  Arity tops() const override { return {1, 2}; }
  bool works_on_host() const override { return !resident_; }

  void open(Context& context) override {
    const DataParameter& data = params<DataParameter>();
    require(!data.source().empty(), "data_param needs a `source`: the folder of a database");
    const std::string path = find_file(data.source(), folder());
    source_ = open_database(path, data.backend());
    context.log().info(cat("Opened ", name_of(data.backend()), " ", path));
  }

  void setup(Context& context, const std::vector<Shape>&) override {
    log_ = &context.log();
    const DataParameter& data = params<DataParameter>();
    require(data.batch_size() > 0, "data_param needs a `batch_size` of at least 1");
    const TransformationParameter& fields = params<TransformationParameter>();
    Transform transform(fields, training(), folder(), context.log());

    LoaderOptions options;
    options.batch_size = data.batch_size();
    options.prefetch = static_cast<int>(data.prefetch());
    options.shuffle = data.shuffle() || data.enable_random_selection();
    options.random = context.random(id());
    if (data.rand_skip() > 0) options.skip = options.random.word(0) % data.rand_skip();
    // A test net runs on the whole of its data whatever the number of ranks.
    if (training()) {
      options.rank = context.rank;
      options.ranks = context.ranks;
    }
    // LevelDB would have to walk through all of its keys to know.
    records_ = data.backend() == DataParameter::LMDB ? source_->size() : 0;
    const bool encoded = is_encoded(*source_);
    options.workers = data.threads() > 0 ? static_cast<int>(data.threads())
                                         : loader_workers(encoded, context.device() == Device::cpu);
    if (!encoded && (fields.force_color() || fields.force_gray())) {
      context.log().warning("force_color and force_gray only for encoded datum");
    }
    loader_ = std::make_unique<Loader>(source_, std::move(transform), options);
    sample_ = loader_->sample_shape();
    if (records_ > 0 && context.resident)
      resident_ = ResidentData::load(context, *source_, *loader_, free_memory(context) / 4);
    context.log().info(cat("output data size: ", data.batch_size(), ",", sample_[0], ",",
                           sample_[1], ",", sample_[2]));
  }

  int64_t records() const override { return records_; }
  double waited() const override { return loader_->waited(); }
  size_t resident_bytes() const override { return resident_ ? resident_->bytes() : 0; }
  void release_resident() override { resident_.reset(); }

  Inference infer(const std::vector<Shape>&) const override {
    const int64_t batch = params<DataParameter>().batch_size();
    std::vector<Shape> tops = {{batch, sample_[0], sample_[1], sample_[2]}};
    if (message().top_size() > 1) tops.push_back({batch});
    return {tops, {}};
  }

  Prepared prepare(Context&, const Preparation& preparation) override {
    if (preparation.dtype != DType::f32) resident_.reset();
    return {};
  }

  bool reshapes(uint64_t pass) override {
    if (resident_) {
      say_restart(static_cast<int64_t>(pass), resident_->epoch(pass));
      return false;
    }
    if (params<DataParameter>().batch_size() > 1) return false;
    const Shape& next = loader_->batch(static_cast<int64_t>(pass)).shape;
    if (next == sample_) return false;
    sample_ = next;
    return true;
  }

  void forward(Context& context, const Forward& pass) override {
    if (resident_) {
      return resident_->batch(context, pass.pass, pass.live_pass, pass.top[0],
                              pass.top.size() > 1 ? pass.top[1] : Tensor());
    }
    const Batch& batch = loader_->batch(static_cast<int64_t>(pass.pass));
    say_restart(batch.number, batch.epoch);
    to_tensor(context, batch.data, pass.top[0]);
    if (pass.top.size() > 1) to_tensor(context, batch.labels, pass.top[1]);
  }

 private:
  // When the data begin again; not after a jump.
  void say_restart(int64_t batch, int64_t epoch) {
    if (batch == last_batch_ + 1 && epoch > last_epoch_)
      log_->info("Restarting data prefetching from start.");
    last_batch_ = batch;
    last_epoch_ = epoch;
  }

  static bool is_encoded(const Source& source) {
    Datum first;
    try {
      source.read(0, first);
    } catch (const Error& problem) {
      fail(source.describe(0), ": ", problem.what());
    }
    return first.encoded();
  }

  std::shared_ptr<const Source> source_;
  std::unique_ptr<Loader> loader_;
  std::unique_ptr<ResidentData> resident_;  // in a GPU's memory; then the loader makes no batches
  Log* log_ = nullptr;
  Shape sample_;  // of the pass that runs
  int64_t records_ = 0;
  int64_t last_batch_ = -1, last_epoch_ = 0;
};

REGISTER_LAYER(Data, DataLayer);

}  // namespace
}  // namespace crema
