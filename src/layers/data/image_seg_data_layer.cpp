// ImageSegData: images and label images from files in a list (DeepLab, PSPNet).
//
//   data[i,c,y,x]  = transform(image of line (n * batch_size + i) mod lines)
//   label[i,0,y,x] = pixel of the line's label image, cropped and mirrored alike
//   dim[i,0,0,:]   = height and width of the image, at most those of data
//   where n counts the batches
//
// Shapes: no bottoms; tops data (batch_size, C, H, W), label (batch_size, 1, H, W) and, if there is
// a third, dim (batch_size, 1, 1, 2).
//
// Parameters: image_data_param: source, a list with lines `image label-image`; label_type: PIXEL,
// IMAGE if the second column is one class for all pixels, NONE if there is none (all are 255);
// root_folder, prefixed to every path; new_height and new_width, to which images are resized
// bilinearly, label images to the nearest pixel; is_color, false for grey; batch_size, shuffle,
// rand_skip; ignore_label, 255 by default, of pixels of unknown class; cache, as for ImageData, of
// both images. transform_param: crop, mirror, mean_value, scale; scale_factors, of which one is
// chosen at random for each sample: both images are resized by it; augment, which moves both:
// pixels from outside the image have the label 255.
//
// An image smaller than the crop is padded below and on the right with the mean and the label 255.
// Without a crop images must have one size, or batch_size is 1: then the net follows each one's
// size.
//
// Gradient: none.
#include "layers/data/label_image_layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class ImageSegDataLayer : public LabelImageLayer {
 public:
  Arity tops() const override { return {1, 3}; }

  void setup(Context& context, const std::vector<Shape>&) override {
    const ImageDataParameter& data = message().image_data_param();
    LabelImageOptions labels;
    using Column = LabelImageOptions::Column;
    labels.second = data.label_type() == ImageDataParameter::PIXEL   ? Column::image
                    : data.label_type() == ImageDataParameter::IMAGE ? Column::number
                                                                     : Column::none;
    labels.pad = true;
    labels.ignore = data.ignore_label();
    require(labels.ignore >= 0 && labels.ignore <= 255, "ignore_label is ", labels.ignore,
            ", but pixels of label images are 0 to 255");
    require(params<TransformationParameter>().mean_file().empty(),
            "ImageSegData takes no mean_file, because its images differ in size; give mean_value");
    start_reading(context, data, params<TransformationParameter>(), labels);
  }
};

REGISTER_LAYER(ImageSegData, ImageSegDataLayer);

}  // namespace
}  // namespace crema
