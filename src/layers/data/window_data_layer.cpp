// WindowData: boxes of images and the class of their content, repeating endlessly, for training
// R-CNN.
//
//   data[i]  = transform(the pixels of a window, resized to crop_size x crop_size)
//   label[i] = its class; 0 for background
//   The last floor(batch_size * fg_fraction) windows of a batch are chosen at random from those
//   that show an object, the first ones from those that show background. With shuffle: false it is
//   window (n * batch_size + i) mod windows of the list, whatever its class, where n counts the
//   batches.
//
// Shapes: no bottoms; tops data (batch_size, C, crop_size, crop_size) and label (batch_size).
//
// Parameters: window_data_param: source, a window file (data/lists/window_file.h); root_folder,
// prefixed to its paths; batch_size; fg_threshold, the overlap from which a window shows an object;
// bg_threshold, below which it shows background; fg_fraction; context_pad, the width in the sample
// of the border around the box, in pixels; crop_mode "warp" stretches the box, "square" takes the
// smallest square around it; cache_images; shuffle, from a saliency fork, must be given as false
// there. transform_param: crop_size, mirror, scale, mean_value or mean_file, whose central crop is
// used; augment, without changes that move pixels. Pixels outside the image are 0.
//
// The windows are a function of the seed and the pass. Each rank draws its own, or takes its part
// of the list; if ranks share batches, fg_fraction applies to the whole batch.
//
// Gradient: none.
#include "layers/data/window_layer.h"

namespace crema {
namespace {

class WindowDataLayer : public WindowLayer {
 public:
  void setup(Context& context, const std::vector<Shape>&) override {
    const WindowDataParameter& data = params<WindowDataParameter>();
    WindowOptions options;
    options.cache = data.cache_images();
    // Caffe's own layer samples at random and has no such field.
    options.in_order = data.has_shuffle() && !data.shuffle();
    start_reading(context, data, "window_data_param", data.root_folder(),
                  params<TransformationParameter>(), options);
  }
};

REGISTER_LAYER(WindowData, WindowDataLayer);

}  // namespace
}  // namespace crema
