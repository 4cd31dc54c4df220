// Fields of forks that say what Caffe's own fields say, under other names.
#include <algorithm>

#include "base/error.h"
#include "net/prototxt/upgrade_layers.h"

namespace crema {

namespace {

// DeepLab's dilation.
void rename_holes(ConvolutionParameter& p, const std::string& place) {
  if (!p.has_hole() && !p.has_hole_h() && !p.has_hole_w()) return;
  require(p.dilation_size() == 0, place,
          ": has `dilation` and `hole`, which are two names of one thing; keep `dilation`");
  if (p.has_hole_h() || p.has_hole_w()) {
    p.add_dilation(p.has_hole_h() ? p.hole_h() : p.hole());
    p.add_dilation(p.has_hole_w() ? p.hole_w() : p.hole());
  } else {
    p.add_dilation(p.hole());
  }
  p.clear_hole();
  p.clear_hole_h();
  p.clear_hole_w();
}

// DeepLab's field for SoftmaxWithLoss.
void move_softmax_loss(LayerParameter& layer, const std::string& place) {
  if (!layer.has_softmax_loss_param() && !layer.has_softmaxloss_param()) return;
  const SoftmaxLossParameter& p =
      layer.has_softmax_loss_param() ? layer.softmax_loss_param() : layer.softmaxloss_param();
  require(
      !p.has_weight_source(), place,
      ": weight_source is a file with a factor for each class; write the factors as loss_param { "
      "weight_by_label_freqs: true class_weighting: ... }, one class_weighting for each class");
  require(p.ignore_label_size() < 2, place, ": there are ", p.ignore_label_size(),
          " ignored labels, but a loss ignores one; give these pixels one label");
  if (p.ignore_label_size() == 1 && !layer.loss_param().has_ignore_label())
    layer.mutable_loss_param()->set_ignore_label(p.ignore_label(0));
  layer.clear_softmax_loss_param();
  layer.clear_softmaxloss_param();
}

// An older BN's names.
void rename_statistics(BNParameter& p, const std::string& place) {
  require(p.axis() == 1, place, ": axis is ", p.axis(), ", but BN takes axis 1 for the channels");
  if (p.has_var_eps() && !p.has_eps()) p.set_eps(p.var_eps());
  if (p.has_decay() && !p.has_momentum()) p.set_momentum(1 - p.decay());
  p.clear_axis();
  p.clear_var_eps();
  p.clear_decay();
}

// A layer of a fork whose parameters are those of another type.
void move_parameters(LayerParameter& layer, const std::string& place) {
  const auto one = [&](const auto& given, const char* field) {
    require(given.size() < 2, place, ": ", field, " is given ", given.size(),
            " times; a layer has one");
    return given.size() == 1;
  };
  if (one(layer.deformable_convolution_param(), "deformable_convolution_param")) {
    *layer.mutable_convolution_param() = layer.deformable_convolution_param(0);
    layer.clear_deformable_convolution_param();
  }
  if (one(layer.reorg_yolo_param(), "reorg_yolo_param")) {
    *layer.mutable_reorg_param() = layer.reorg_yolo_param(0);
    layer.clear_reorg_yolo_param();
  }
}

// FlowNet multiplies by an Eltwise of one bottom.
void replace_lone_eltwise(LayerParameter& layer) {
  if (layer.type() != "Eltwise" || layer.bottom_size() != 1) return;
  const EltwiseParameter& p = layer.eltwise_param();
  if (p.operation() == EltwiseParameter::SUM && p.coeff_size() == 1)
    layer.mutable_power_param()->set_scale(p.coeff(0));
  layer.set_type("Power");
  layer.clear_eltwise_param();
}

// A fork's Interp.
void refuse_nearest(const LayerParameter& layer, const std::string& place) {
  require(layer.interp_param().interp_type() == "bilinear", place, ": interp_type is \"",
          layer.interp_param().interp_type(),
          "\", but Interp is bilinear; Resample with resample_param { type: NEAREST }, or Upsample "
          "with one bottom, takes the nearest pixel");
}

}  // namespace

void rename_fork_fields(NetParameter* net, const std::vector<std::string>& origins,
                        const Locate& where) {
  for (int i = 0; i < net->layer_size(); ++i) {
    LayerParameter& layer = *net->mutable_layer(i);
    const auto place = [&](const char* block) {
      return cat(where(origins[static_cast<size_t>(i)]), ": layer \"", layer.name(), "\": ", block);
    };
    if (layer.deformable_convolution_param_size() > 0 || layer.reorg_yolo_param_size() > 0)
      move_parameters(layer, place("its parameters"));
    if (layer.type() == "ReorgYolo") layer.set_type("Reorg");
    replace_lone_eltwise(layer);
    if (layer.interp_param().has_interp_type()) refuse_nearest(layer, place("interp_param"));
    if (layer.has_convolution_param())
      rename_holes(*layer.mutable_convolution_param(), place("convolution_param"));
    move_softmax_loss(layer, place("softmax_loss_param"));
    if (layer.has_bn_param()) rename_statistics(*layer.mutable_bn_param(), place("bn_param"));
    if (layer.type() == "ImageSegData" && !layer.image_data_param().has_label())
      layer.mutable_image_data_param()->set_label_type(ImageDataParameter::NONE);
  }
}

}  // namespace crema
