// DenseImageData: images and label images from files in a list (SegNet, ENet).
//
//   data[i,c,y,x]  = transform(image of line (n * batch_size + i) mod lines)
//   label[i,0,y,x] = floor(pixel of the line's label image / label_divider), cropped and mirrored
//                    alike
//   where n counts the batches
//
// Shapes: no bottoms; tops data (batch_size, C, H, W) and label (batch_size, 1, H, W), or three
// channels of label with is_label_color. With label_divide_factor f the label map has H / f rows
// and W / f columns, rounded down, each the nearest pixel of the full map.
//
// Parameters: dense_image_data_param: source, a list with lines `image label-image`; root_folder,
// prefixed to every path; new_height and new_width, to which images are resized bilinearly, label
// images to the nearest pixel; is_color, false for grey; crop_height and crop_width, mirror, scale
// and mean_file, as in transform_param, which is read too; batch_size, shuffle, rand_skip. If
// transform_param { augment } moves an image, pixels from outside it have the label floor(255 /
// label_divider).
//
// Images must have one size, unless they are resized or cropped, or batch_size is 1: then the net
// follows each one's size.
//
// Gradient: none.
#include "layers/data/label_image_layer.h"

namespace crema {
namespace {

class DenseImageDataLayer : public LabelImageLayer {
 public:
  void setup(Context& context, const std::vector<Shape>&) override {
    const DenseImageDataParameter& data = params<DenseImageDataParameter>();
    TransformationParameter transform = params<TransformationParameter>();
    if (data.has_crop_height()) transform.set_crop_height(data.crop_height());
    if (data.has_crop_width()) transform.set_crop_width(data.crop_width());
    if (data.has_mirror()) transform.set_mirror(data.mirror());
    if (data.has_scale()) transform.set_scale(data.scale());
    if (data.has_mean_file()) transform.set_mean_file(data.mean_file());
    LabelImageOptions labels;
    labels.color = data.is_label_color();
    labels.divider = static_cast<int>(data.label_divider());
    require(labels.divider > 0, "label_divider is 0; labels are divided by it");
    labels.shrink = data.label_divide_factor();
    require(labels.shrink > 0,
            "label_divide_factor is 0; height and width of the label map are divided by it");
    start_reading(context, data, transform, labels);
  }
};

REGISTER_LAYER(DenseImageData, DenseImageDataLayer);

}  // namespace
}  // namespace crema
