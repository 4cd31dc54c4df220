// WindowLayer: base of WindowData and McWindowData, which read windows of the images that a window
// file lists.
#pragma once

#include "base/error.h"
#include "base/files.h"
#include "data/lists/window_dataset.h"
#include "layers/data/loader_layer.h"
#include "proto/layer.pb.h"

namespace crema {

class WindowLayer : public LoaderLayer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::source,
                                       .content = SourceContent::regions};

  // Randomly sampled windows have no epoch.
  int64_t records() const override { return in_order_ ? windows_->size() : 0; }

 protected:
  bool has_epochs() const override { return in_order_; }
  // The last step of setup. `Parameter`: WindowDataParameter or McWindowDataParameter; `where`: its
  // name. `options` has the settings that are not in the message.
  template <typename Parameter>
  void start_reading(Context& context, const Parameter& data, const std::string& where,
                     const std::string& root, const TransformationParameter& transform,
                     WindowOptions options) {
    require(!data.source().empty(), where, " needs a `source`: a window file");
    require(data.batch_size() > 0, where, " needs a `batch_size` of at least 1");
    require(data.fg_fraction() >= 0 && data.fg_fraction() <= 1, "fg_fraction is ",
            data.fg_fraction(), "; it is a share of the batch, from 0 to 1");
    require(data.crop_mode() == "warp" || data.crop_mode() == "square", "unknown crop_mode \"",
            data.crop_mode(), "\"", did_you_mean(data.crop_mode(), {"warp", "square"}),
            "; there are warp and square");
    in_order_ = options.in_order;
    options.batch_size = data.batch_size();
    options.object_share = data.fg_fraction();
    options.context = data.context_pad();
    options.square = data.crop_mode() == "square";
    const LoaderOptions loading = loader_options(context, data.batch_size(), 0);
    options.first_in_batch = loading.first_in_batch;
    const std::string path = find_file(data.source(), folder());
    WindowFile file = read_window_file(
        path, {data.fg_threshold(), data.bg_threshold(), options.mask_size > 0, in_order_});
    context.log().info(cat("Number of images: ", file.images.size()));
    context.log().info(in_order_ ? cat("Number of windows: ", file.in_order.size())
                                 : cat("Number of windows: ", file.objects.size(), " of objects, ",
                                       file.background.size(), " of background"));
    windows_ = std::make_shared<WindowDataset>(
        path, std::move(file), ImageReading{root, folder()},
        Transform(transform, training(), folder(), context.log()), options);
    start(context, windows_, loading);
  }
  const WindowDataset& windows() const { return *windows_; }

 private:
  std::shared_ptr<const WindowDataset> windows_;
  bool in_order_ = false;
};

}  // namespace crema
