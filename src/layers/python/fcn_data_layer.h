// FcnDataLayer: base of FCN's data layers (fcn_data_layers.cpp), which read images and label maps of
// public data sets from their folders, one image in a batch.
#pragma once

#include <string>
#include <vector>

#include "data/lists/named_images.h"
#include "layers/data/loader_layer.h"
#include "layers/python/param_str.h"
#include "layers/python/usual_tops.h"

namespace crema {

class FcnDataLayer : public LoaderLayer, public UsualTops {
 public:
  void setup(Context& context, const std::vector<Shape>&) override;
  int64_t records() const override { return images_->size(); }
  std::vector<Shape> usual_tops() const override;
  LayerTraits traits() const override {
    LayerTraits traits = LoaderLayer::traits();
    traits.dynamic = true;
    return traits;
  }
  // (1, channels, H, W) each, with the largest H and W so far, because a plan for every size would
  // cost more than training. The sizes in a pass are DynamicTops.
  bool reshapes(uint64_t pass) override;
  Inference infer(const std::vector<Shape>& bottoms) const override;
  void forward(Context& context, const Forward& pass) const override;

 protected:
  // The text with the names, under the data set's folder.
  virtual std::string list(const ParamStr& params) const = 0;
  // One for each top.
  virtual std::vector<NamedFile> files(const ParamStr& params) const = 0;

  // Height and width of many of its images.
  virtual std::pair<int64_t, int64_t> usual_size() const { return {375, 500}; }

  // The folder that `key` names, found like any path of the net's file.
  std::string find(const ParamStr& params, const std::string& key) const;
  // Three numbers, which the text must give.
  static std::array<double, 3> mean(const ParamStr& params);

 private:
  std::shared_ptr<const NamedImages> images_;
  std::vector<Shape> shapes_of(int64_t height, int64_t width) const;

  std::vector<int64_t> channels_;  // of each top
  int64_t height_ = 0, width_ = 0;
};

}  // namespace crema
