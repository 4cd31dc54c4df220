// LoaderLayer: base of the layers whose batches come from a Loader (data/loader/loader.h). It has
// the loader, shapes that follow the images, and copies each batch into the tops.
#pragma once

#include <memory>
#include <string>

#include "data/databases/source.h"
#include "data/loader/image_cache.h"
#include "data/loader/loader.h"
#include "layers/layer.h"

namespace crema {

class LoaderLayer : public Layer, public DataSource {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::source, .content = SourceContent::images};

  Arity bottoms() const override { return {0, 0}; }
  Arity tops() const override { return {1, 2}; }
  DataSource* source() override { return this; }
  LayerTraits traits() const override { return {.works_on_host = true}; }
  double waited() const override { return waited_before_ + (loader_ ? loader_->waited() : 0); }
  std::string waiting_hint() const override;
  // (batch_size, the data's shape); if more tops are named, the labels, and (batch_size, 1, 1, 2):
  // height and width of each image, at most those of the data.
  Inference infer(const std::vector<Shape>& bottoms) const override;
  bool reshapes(uint64_t pass) override;
  int64_t count_records() override { return has_epochs() ? loader_->records() : 0; }
  BatchShare share() const override;
  void skip_samples(int64_t samples) override;
  std::string describe_sample(uint64_t pass, int64_t in_batch) override {
    return loader_ ? loader_->describe(static_cast<int64_t>(pass), in_batch) : "";
  }
  uint64_t hash_of_first() const override { return loader_ ? loader_->hash_of_first() : 0; }
  void read_whole_epochs() override { whole_epochs_ = true; }
  int64_t records_in(uint64_t pass) override;
  void forward(Context& context, const Forward& pass) const override;

 protected:
  // Whether the second top has the class of each sample, so that classes can be mixed.
  virtual bool has_classes() const { return false; }
  // Whether the layer's parameters ask for `balance`, and the phase does not forbid it.
  bool balances(Log& log) const;
  // Whether traversals end: with samples drawn at random they do not.
  virtual bool has_epochs() const { return true; }
  // Batch size, this rank's share, and the random numbers; skips at most rand_skip samples.
  LoaderOptions loader_options(Context& context, int64_t batch_size, int64_t rand_skip) const;
  // As above, with the remaining fields of data_param.
  LoaderOptions database_options(Context& context) const;
  // The database that data_param names; logs Caffe's line about it.
  std::shared_ptr<const Source> open_source(Context& context) const;
  // The same for another message with the name `where`.
  std::shared_ptr<const Source> open_source(Context& context, const char* where,
                                            const std::string& database, Backend backend) const;
  // The `cache` settings of data_param or image_data_param for the images of this database or list;
  // null: none.
  template <typename Parameter>
  std::unique_ptr<ImageCache> image_cache(Context& context, const Parameter& data,
                                          const std::string& source) const {
    if (data.cache() == DataParameter::false_) return nullptr;
    return std::make_unique<ImageCache>(
        ImageCacheOptions{data.cache() == DataParameter::DISK,
                          static_cast<int64_t>(data.cache_limit()) << 20, data.cache_folder(),
                          source},
        context.log());
  }
  // The last step of setup. options.workers 0: chosen automatically.
  void start(Context& context, std::shared_ptr<const Dataset> samples,
             const LoaderOptions& options);
  // Whether this layer supports transform_param { decoder: GPU }.
  virtual bool may_decode_on_gpu() const { return false; }
  // The same without a word in the log, as often as there are new samples.
  void fill_from(std::shared_ptr<const Dataset> samples, LoaderOptions options, Device device);
  const LoaderOptions& options() const { return loader_->options(); }
  // Samples in the batch of the current pass.
  int64_t batch_size() const { return batch_size_; }
  // Fewer at the end of a whole epoch. Returns true when the number has changed.
  bool set_batch_size(uint64_t pass);
  // How transform_param { augment } mixes samples; throws Error with the reason if these cannot be
  // mixed.
  Mixture mixture_of(const Dataset& samples, const LoaderOptions& options) const;
  // The values of one top, in memory that every pass of a plan reuses.
  struct TopValues : LayerState {
    std::vector<float> values;
  };
  // The labels of a sample hold its rows of all tops after the first: writes these tops. The layer's
  // state is TopValues.
  void write_further_tops(Context& context, const Batch& batch, const Forward& pass) const;
  // Waits for the batch of this pass, and logs when a new epoch begins.
  const Batch& batch(uint64_t pass) const;
  // Logs the new epoch; not after a jump.
  void say_restart(int64_t batch, int64_t epoch) const;

 private:
  std::unique_ptr<Loader> loader_;
  double waited_before_ = 0;  // for loaders that are gone
  Log* log_ = nullptr;        // once started
  bool labels_vary_ = false, whole_epochs_ = false;
  int64_t batch_size_ = 0;
  Shape sample_, labels_;  // in the current pass
  // The last pass of any plan, for the log. One thread reads a source.
  mutable int64_t last_batch_ = -1, last_epoch_ = 0;
};

}  // namespace crema
