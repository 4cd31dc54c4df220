#include "layers/data/loader_layer.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "data/databases/tar/tar_shards.h"
#include "data/loader/to_tensor.h"
#include "device/communicator.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

// The label axis of variable extent: (1, 1, rows, values).
constexpr int kRows = 2;

}  // namespace

LoaderOptions LoaderLayer::loader_options(Context& context, int64_t batch_size,
                                          int64_t rand_skip) const {
  LoaderOptions options;
  options.batch_size = batch_size;
  options.random = context.random(id());
  options.whole_epochs = whole_epochs_ && has_epochs();
  if (rand_skip > 0 && !options.whole_epochs) options.skip = options.random.word(0) % rand_skip;
  // A test net has the same batches on every rank.
  if (training() && !options.whole_epochs && context.world()) {
    const BatchShare share = context.world()->share_of(batch_size);
    options.batch_size = share.count;
    options.batch_of_ranks = share.all;
    options.first_in_batch = share.first;
  }
  options.balance = balances(context.log());
  options.workers = 0;
  return options;
}

bool LoaderLayer::balances(Log& log) const {
  const ImageDataParameter& images = message().image_data_param();
  if (!message().data_param().balance() && !images.balance() && !images.balance_class() &&
      !message().hdf5_data_param().balance())
    return false;
  if (!training()) log.info("balance is for training: here each record comes once an epoch");
  return training();
}

LoaderOptions LoaderLayer::database_options(Context& context) const {
  const DataParameter& data = params<DataParameter>();
  require(data.batch_size() > 0, "data_param needs a `batch_size` of at least 1");
  LoaderOptions options = loader_options(context, data.batch_size(), data.rand_skip());
  options.prefetch = static_cast<int>(data.prefetch());
  options.shuffle = data.shuffle() || data.enable_random_selection();
  options.workers = static_cast<int>(data.threads());
  return options;
}

std::shared_ptr<const Source> LoaderLayer::open_source(Context& context) const {
  const DataParameter& data = params<DataParameter>();
  return open_source(context, "data_param", data.source(), data.backend());
}

std::shared_ptr<const Source> LoaderLayer::open_source(Context& context, const char* where,
                                                       const std::string& database,
                                                       Backend backend) const {
  require(!database.empty(), where, " needs a `source`: the folder of a database");
  const std::string path = find_source(database, folder());
  std::shared_ptr<const Source> source = open_database(path, backend);
  context.log().info(cat("Opened ", name_of(backend), " ", path));
  return source;
}

void LoaderLayer::start(Context& context, std::shared_ptr<const Dataset> samples,
                        const LoaderOptions& options) {
  log_ = &context.log();
  require(may_decode_on_gpu() ||
              params<TransformationParameter>().decoder() != TransformationParameter::GPU,
          "transform_param has decoder: GPU, which is only for Data layers: a database of JPEGs; "
          "remove it, or convert the images");
  fill_from(std::move(samples), options, context.device());
  std::string size = cat("output data size: ", options.batch_size);
  for (const int64_t extent : sample_.dims()) size += cat(",", extent);
  context.log().info(size);
}

void LoaderLayer::fill_from(std::shared_ptr<const Dataset> samples, LoaderOptions options,
                            Device device) {
  if (options.workers == 0) {
    const bool decodes = samples->decodes(), cpu_computes = device == Device::cpu;
    options.workers = loader_workers(decodes, cpu_computes);
    options.reserve = loader_reserve(decodes, cpu_computes);
  }
  labels_vary_ = samples->labels_vary();
  options.mixture = mixture_of(*samples, options);
  if (loader_) waited_before_ += loader_->waited();
  loader_.reset();  // and with it the samples that it had
  if (options.balance) {
    require(has_classes(), "balance draws classes equally often, but the labels of ", type(),
            " are something else; Data, ImageData and HDF5Data have a class for each record");
    log_->info(cat("Reading the classes of ", samples->size(), " records"));
  }
  loader_ = std::make_unique<Loader>(std::move(samples), options);
  if (loader_->balance()) log_->info("Balanced: " + loader_->balance()->describe());
  sample_ = loader_->sample_shape();
  labels_ = loader_->label_shape();
  set_batch_size(0);
}

Mixture LoaderLayer::mixture_of(const Dataset& samples, const LoaderOptions& options) const {
  const AugmentParameter& augment = params<TransformationParameter>().augment();
  const bool boxes = samples.labels_vary();
  require(!augment.has_mosaic() || boxes,
          "augment has mosaic, which joins images with boxes around their objects, but ", type(),
          " has no boxes here; those of AnnotatedData can be joined, and images with a class by "
          "cutmix");
  if (!training()) return {};
  const Mixture mixture(augment, type(), options.random);
  if (!mixture.any()) return {};
  require(has_classes(), "augment has ", mixture.name(),
          ", which mixes samples that have a class each, but the labels of ", type(),
          " are something else; Data, ImageData and HDF5Data can mix",
          boxes ? ", and mosaic joins images with boxes" : "");
  require(message().top_size() > 1, "augment has ", mixture.name(),
          ", but there is no second top for the labels, which are mixed too");
  require(options.batch_size > 1, "augment has ", mixture.name(),
          ", which mixes the samples of a batch, but ",
          options.traversed() > 1 ? "a rank has only one of them; raise batch_size"
                                  : "batch_size is 1");
  return mixture;
}

BatchShare LoaderLayer::share() const {
  if (!loader_ || options().batch_of_ranks == 0) return {};
  return {options().first_in_batch, options().batch_size, options().batch_of_ranks};
}

void LoaderLayer::skip_samples(int64_t samples) { loader_->skip(samples); }

bool LoaderLayer::set_batch_size(uint64_t pass) {
  const int64_t before = batch_size_;
  batch_size_ = loader_->samples(static_cast<int64_t>(pass));
  if (!labels_vary_) labels_[0] = batch_size_;
  return batch_size_ != before;
}

int64_t LoaderLayer::records_in(uint64_t pass) {
  return options().whole_epochs ? loader_->samples(static_cast<int64_t>(pass)) : 0;
}

Inference LoaderLayer::infer(const std::vector<Shape>&) const {
  std::vector<int64_t> data = sample_.dims();
  data.insert(data.begin(), batch_size_);
  std::vector<Shape> tops = {Shape(data)};
  if (message().top_size() > 1) tops.push_back(labels_);
  if (message().top_size() > 2) tops.push_back({batch_size_, 1, 1, 2});
  return {tops, {}};
}

bool LoaderLayer::reshapes(uint64_t pass) {
  const bool other_size = set_batch_size(pass);
  if (options().batch_size > 1 && !labels_vary_) return other_size;
  const Batch& next = loader_->batch(static_cast<int64_t>(pass));
  const bool room =
      message().top_size() < 2 ||
      (labels_vary_ ? labels_.count() >= next.label_shape.count() : labels_ == next.label_shape);
  if (next.shape == sample_ && room) return other_size;
  sample_ = next.shape;
  if (!room) labels_ = next.label_shape;
  // Reserves twice the rows: a new plan for each batch would cost more than the training.
  if (!room && labels_vary_) labels_[kRows] *= 2;
  return true;
}

const Batch& LoaderLayer::batch(uint64_t pass) const {
  const Batch& batch = loader_->batch(static_cast<int64_t>(pass));
  say_restart(batch.number, batch.epoch);
  return batch;
}

void LoaderLayer::forward(Context& context, const Forward& pass) const {
  const Batch& batch = this->batch(pass.pass);
  to_tensor(context, batch.data, pass.top[0]);
  if (pass.top.size() > 1 && labels_vary_) {
    std::vector<float> labels = batch.labels;
    labels.resize(pass.top[1].count(), -1);
    to_tensor(context, labels, pass.top[1]);
  } else if (pass.top.size() > 1) {
    to_tensor(context, batch.labels, pass.top[1]);
  }
  if (pass.top.size() > 2) {
    std::vector<float> sizes = batch.sizes;
    for (size_t i = 0; i < sizes.size(); ++i)
      sizes[i] = std::min(sizes[i], static_cast<float>(batch.shape[i % 2 == 0 ? 1 : 2]));
    to_tensor(context, sizes, pass.top[2]);
  }
}

void LoaderLayer::write_further_tops(Context& context, const Batch& batch,
                                     const Forward& pass) const {
  std::vector<float>& values = state_of<TopValues>(pass).values;
  const auto samples = static_cast<size_t>(batch_size());
  const size_t all = batch.labels.size() / samples;
  auto from = batch.labels.begin();
  for (size_t top = 1; top < pass.top.size(); ++top) {
    const size_t each = static_cast<size_t>(pass.top[top].count()) / samples;
    values.resize(samples * each);
    for (size_t i = 0; i < samples; ++i)
      std::copy_n(from + i * all, each, values.begin() + i * each);
    to_tensor(context, values, pass.top[top]);
    from += each;
  }
}

void LoaderLayer::say_restart(int64_t batch, int64_t epoch) const {
  if (log_ && batch == last_batch_ + 1 && epoch > last_epoch_)
    log_->info("Restarting data prefetching from start.");
  last_batch_ = batch;
  last_epoch_ = epoch;
}

std::string LoaderLayer::waiting_hint() const {
  if (!loader_) return "";
  WaitingFacts facts = loader_->survey();
  const TransformationParameter& transform = message().transform_param();
  const ImageDataParameter& images = message().image_data_param();
  facts.resizes =
      transform.augment().has_resized_crop() || images.new_height() > 0 || images.short_side() > 0;
  facts.scaled = transform.scaled_decoding();
  facts.has_cache = message().has_data_param() || message().has_image_data_param();
  facts.cached = message().data_param().cache() != DataParameter::false_ ||
                 images.cache() != DataParameter::false_;
  return crema::waiting_hint(facts);
}

}  // namespace crema
