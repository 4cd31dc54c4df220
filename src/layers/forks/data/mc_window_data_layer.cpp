// McWindowData: windows of images and of their masks, grey images of the same size, such as
// saliency maps of an earlier net (Zhao et al., "Saliency Detection by Multi-Context Deep
// Learning", CVPR 2015; V1 type MCWINDOW_DATA).
//
//   data[i]     = transform(the pixels of a window, resized to crop_size x crop_size)
//   mask[i,m]   = (the pixels of mask m in the same window, resized to mask_crop_size x
//                 mask_crop_size) / 255, from 0 to 1
//   label[i]    = the window's class; 0 for background
//   It is window (n * batch_size + i) mod windows of the list, where n counts the batches. With
//   shuffle the windows of a batch are chosen as in WindowData.
//
// Shapes: no bottoms; tops data (batch_size, C, crop_size, crop_size), mask (batch_size, M,
// mask_crop_size, mask_crop_size), with M masks per image, and label (batch_size).
//
// Parameters: mcwindow_data_param: source, a window file with masks (data/lists/window_file.h);
// batch_size; crop_size and mask_crop_size; fg_threshold, the overlap from which a window shows an
// object; bg_threshold, below which it shows background, of class 0; a window between keeps the
// class of the list; fg_fraction, the fraction of objects in a randomly chosen batch; context_pad,
// the number of the crop_size pixels around the box on each side; crop_mode "warp" stretches the
// box, "square" takes the smallest square around it; mirror, scale and mean_file, as in
// transform_param, which is read too.
//
// Pixels outside the image are 0, also in a mask, where they cover the same part of the window as
// in data: the fork stretches a mask over its whole sample and then shifts it by rows and columns
// of data, beyond the end of the sample.
//
// The windows are a function of the seed and the pass. With several ranks each takes its part of
// the list, or draws its own.
//
// Gradient: none.
#include "data/loader/to_tensor.h"
#include "layers/data/window_layer.h"

namespace crema {
namespace {

class McWindowDataLayer : public WindowLayer {
  Arity tops() const override { return {3, 3}; }

  void setup(Context& context, const std::vector<Shape>&) override {
    const McWindowDataParameter& data = params<McWindowDataParameter>();
    TransformationParameter transform = params<TransformationParameter>();
    if (data.has_crop_size()) transform.set_crop_size(data.crop_size());
    if (data.has_mirror()) transform.set_mirror(data.mirror());
    if (data.has_scale()) transform.set_scale(data.scale());
    if (data.has_mean_file()) transform.set_mean_file(data.mean_file());
    require(transform.crop_size() > 0,
            "the size of the windows is missing: give mcwindow_data_param a crop_size");
    require(data.mask_crop_size() > 0,
            "the size of the masks is missing: give mcwindow_data_param a mask_crop_size");
    WindowOptions options;
    options.in_order = !data.shuffle();
    options.mask_size = data.mask_crop_size();
    start_reading(context, data, "mcwindow_data_param", "", transform, options);
  }

  Inference infer(const std::vector<Shape>&) const override {
    const int64_t batch = batch_size(), side = params<McWindowDataParameter>().mask_crop_size();
    return {{WindowLayer::infer({}).tops[0], {batch, windows().masks(), side, side}, {batch}}, {}};
  }

  void forward(Context& context, const Forward& pass) const override {
    const Batch& made = batch(pass.pass);
    to_tensor(context, made.data, pass.top[0]);
    // A sample's labels are its class and the pixels of its masks.
    const auto each = static_cast<std::ptrdiff_t>(made.labels.size()) / made.samples;
    std::vector<float> masks, classes;
    for (auto at = made.labels.begin(); at != made.labels.end(); at += each) {
      classes.push_back(*at);
      masks.insert(masks.end(), at + 1, at + each);
    }
    to_tensor(context, masks, pass.top[1]);
    to_tensor(context, classes, pass.top[2]);
  }
};

REGISTER_LAYER(McWindowData, McWindowDataLayer);

}  // namespace
}  // namespace crema
