// LoaderLayer: base of the layers whose batches come from a Loader (data/loader/loader.h). It has
// the loader, shapes that follow the images, and copies each batch into the tops.
#pragma once

#include <memory>
#include <string>

#include "data/databases/source.h"
#include "data/loader/loader.h"
#include "layers/layer.h"

namespace crema {

class LoaderLayer : public Layer {
 public:
  Arity bottoms() const override { return {0, 0}; }
  Arity tops() const override { return {1, 2}; }
  bool works_on_host() const override { return true; }
  double waited() const override { return loader_->waited(); }
  // (batch_size, the data's shape); if more tops are named, the labels, and (batch_size, 1, 1, 2):
  // height and width of each image, at most those of the data.
  Inference infer(const std::vector<Shape>& bottoms) const override;
  bool reshapes(uint64_t pass) override;
  void forward(Context& context, const Forward& pass) override;

 protected:
  // Batch size, this rank's share, and the random numbers; skips at most rand_skip samples.
  LoaderOptions loader_options(Context& context, int64_t batch_size, int64_t rand_skip) const;
  // As above, with the remaining fields of data_param.
  LoaderOptions database_options(Context& context) const;
  // The database that data_param names; logs Caffe's line about it.
  std::shared_ptr<const Source> open_source(Context& context) const;
  // The same for another message, whose name is `where`.
  std::shared_ptr<const Source> open_source(Context& context, const char* where,
                                            const std::string& database, Backend backend) const;
  // The last step of setup. options.workers 0: chosen automatically.
  void start(Context& context, std::shared_ptr<const Dataset> samples, LoaderOptions options);
  const LoaderOptions& options() const { return loader_->options(); }
  // Waits for the batch of this pass, and logs when a new epoch begins.
  const Batch& batch(uint64_t pass);
  // Logs the new epoch; not after a jump.
  void say_restart(int64_t batch, int64_t epoch);

 private:
  std::unique_ptr<Loader> loader_;
  Log* log_ = nullptr;
  bool labels_vary_ = false;
  Shape sample_, labels_;  // of the current pass
  int64_t last_batch_ = -1, last_epoch_ = 0;
};

}  // namespace crema
