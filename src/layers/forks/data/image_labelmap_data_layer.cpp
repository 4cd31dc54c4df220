// ImageLabelmapData: images and edge maps from files in a list (HED).
//
//   data[i,c,y,x]  = transform(image of line (n * batch_size + i) mod lines)
//   label[i,0,y,x] = 1 where the line's second image is 128 or more, else 0, cropped and mirrored
//                    alike
//   where n counts the batches
//
// Shapes: no bottoms; tops data (batch_size, C, H, W) and label (batch_size, 1, H, W).
//
// Parameters: image_data_param: source, a list with lines `image label-image`; root_folder,
// prefixed to every path; new_height and new_width, to which both images are resized bilinearly;
// is_color, false for grey; batch_size, shuffle, rand_skip. transform_param: crop, mirror, mean,
// scale, augment, which moves both images.
//
// Images must have one size, unless they are resized or cropped, or batch_size is 1: then the net
// follows each one's size.
//
// Gradient: none.
#include "layers/data/label_image_layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class ImageLabelmapDataLayer : public LabelImageLayer {
 public:
  void setup(Context& context, const std::vector<Shape>&) override {
    LabelImageOptions labels;
    labels.edges = true;
    start_reading(context, message().image_data_param(), params<TransformationParameter>(), labels);
  }
};

REGISTER_LAYER(ImageLabelmapData, ImageLabelmapDataLayer);

}  // namespace
}  // namespace crema
