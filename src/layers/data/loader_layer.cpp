#include "layers/data/loader_layer.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "data/loader/to_tensor.h"
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
  if (rand_skip > 0) options.skip = options.random.word(0) % rand_skip;
  // A test net runs on all of its data whatever the number of ranks.
  if (training()) {
    options.rank = context.rank;
    options.ranks = context.ranks;
  }
  options.workers = 0;
  return options;
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
  const std::string path = find_file(database, folder());
  std::shared_ptr<const Source> source = open_database(path, backend);
  context.log().info(cat("Opened ", name_of(backend), " ", path));
  return source;
}

void LoaderLayer::start(Context& context, std::shared_ptr<const Dataset> samples,
                        LoaderOptions options) {
  log_ = &context.log();
  if (options.workers == 0)
    options.workers = loader_workers(samples->decodes(), context.device() == Device::cpu);
  labels_vary_ = samples->labels_vary();
  loader_ = std::make_unique<Loader>(std::move(samples), options);
  sample_ = loader_->sample_shape();
  labels_ = loader_->label_shape();
  std::string size = cat("output data size: ", options.batch_size);
  for (const int64_t extent : sample_.dims()) size += cat(",", extent);
  context.log().info(size);
}

Inference LoaderLayer::infer(const std::vector<Shape>&) const {
  std::vector<int64_t> data = sample_.dims();
  data.insert(data.begin(), options().batch_size);
  std::vector<Shape> tops = {Shape(data)};
  if (message().top_size() > 1) tops.push_back(labels_);
  if (message().top_size() > 2) tops.push_back({options().batch_size, 1, 1, 2});
  return {tops, {}};
}

bool LoaderLayer::reshapes(uint64_t pass) {
  if (options().batch_size > 1 && !labels_vary_) return false;
  const Batch& next = loader_->batch(static_cast<int64_t>(pass));
  const bool room =
      message().top_size() < 2 ||
      (labels_vary_ ? labels_.count() >= next.label_shape.count() : labels_ == next.label_shape);
  if (next.shape == sample_ && room) return false;
  sample_ = next.shape;
  if (!room) labels_ = next.label_shape;
  // Reserves twice the rows: a new plan for each batch would cost more than the training.
  if (!room && labels_vary_) labels_[kRows] *= 2;
  return true;
}

const Batch& LoaderLayer::batch(uint64_t pass) {
  const Batch& batch = loader_->batch(static_cast<int64_t>(pass));
  say_restart(batch.number, batch.epoch);
  return batch;
}

void LoaderLayer::forward(Context& context, const Forward& pass) {
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

void LoaderLayer::say_restart(int64_t batch, int64_t epoch) {
  if (batch == last_batch_ + 1 && epoch > last_epoch_)
    log_->info("Restarting data prefetching from start.");
  last_batch_ = batch;
  last_epoch_ = epoch;
}

}  // namespace crema
