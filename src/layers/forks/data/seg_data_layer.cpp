// SegData: images of any size and label images from files in a list, one image per batch (the fork
// of Temporal Segment Networks, github.com/yjxiong/caffe).
//
//   data[i,c,y,x]  = transform(image of line (n * batch_size + i) mod lines)
//   label[i,0,y,x] = pixel of the line's label image, resized, cropped and mirrored alike
//   where n counts the batches
//   The image is resized by a random factor between the two scale_ratios, then cropped to
//   H = floor(height / stride) * stride rows, or upper_height if that is less, and W columns
//   likewise: the net follows each image, and the strides of its layers divide the size evenly.
//
// Shapes: no bottoms; tops data (batch_size, 3, H, W) and label (batch_size, 1, H, W).
//
// Parameters: seg_data_param: source, a list with lines `image label-image`; root_dir, prefixed to
// every path; shuffle; balance: while one value covers more than 0.8 of the labels, another factor
// and crop are drawn, at most ten times; batch_size, 1 unless transform_param has a crop_size.
// transform_param: stride; scale_ratios, two numbers, 1 and 1 by default; upper_size, or
// upper_height and upper_width; crop_size, of other versions of this layer, instead of stride and
// upper sizes; mirror, mean_value, scale; augment, which moves both images first: pixels from
// outside have the label 255.
//
// The crop is random in training and central in testing, as in all layers here; the fork draws it
// in both, and aborts if mirror is off. An image smaller than crop_size is padded below and on the
// right with the mean and the label 255; one smaller than the stride is an error.
//
// Other forks use this name for other layers, which read a database or a list of names without
// extensions: DenseImageData and ImageSegData can read their lists, written out.
//
// Gradient: none.
#include "layers/data/label_image_layer.h"

namespace crema {
namespace {

class SegDataLayer : public LabelImageLayer {
 public:
  void setup(Context& context, const std::vector<Shape>&) override {
    const SegDataParameter& data = params<SegDataParameter>();
    TransformationParameter transform = params<TransformationParameter>();
    require(!data.source().empty(),
            "seg_data_param needs a `source`: a list with lines `image label-image`");
    require(transform.mean_file().empty(),
            "SegData takes no mean_file, because its images differ in size; give mean_value");
    require(transform.scale_factors_size() == 0,
            "SegData takes no scale_factors; give the minimum and the maximum factor as two "
            "scale_ratios");
    require(!transform.multi_scale() && !transform.fix_crop(),
            "SegData takes no multi_scale or fix_crop; scale_ratios, stride and upper_size say "
            "what is cropped");
    LabelImageOptions labels;
    labels.pad = true;
    labels.stride_crop = read_crop(transform);
    labels.stride_crop->balance = data.balance();
    ImageDataParameter images;
    images.set_source(data.source());
    images.set_root_folder(data.root_dir());
    images.set_batch_size(data.batch_size());
    images.set_shuffle(data.shuffle());
    start_reading(context, images, transform, labels);
  }

 private:
  // Reads factors and crops from transform_param and removes scale_ratios from it; a Transform
  // itself only knows crop_size.
  static StrideCrop read_crop(TransformationParameter& transform) {
    StrideCrop crop;
    require(transform.stride() > 0, "stride is ", transform.stride(),
            "; height and width of a crop are multiples of it, 1 or more");
    crop.stride = transform.stride();
    const int ratios = transform.scale_ratios_size();
    require(ratios == 0 || ratios == 2, "there are ", ratios,
            " scale_ratios; SegData draws a factor between two, the minimum and the maximum");
    if (ratios == 2) {
      crop.min_scale = transform.scale_ratios(0);
      crop.max_scale = transform.scale_ratios(1);
    }
    transform.clear_scale_ratios();
    require(transform.has_upper_height() == transform.has_upper_width(),
            "only one of upper_height and upper_width is given; give both, or upper_size");
    if (transform.has_upper_size()) {
      crop.max_height = crop.max_width = transform.upper_size();
    } else if (transform.has_upper_height()) {
      crop.max_height = transform.upper_height();
      crop.max_width = transform.upper_width();
    }
    require(crop.max_height > 0 && crop.max_width > 0, "a crop of at most ", crop.max_height, "x",
            crop.max_width,
            " pixels is none; upper_size, upper_height and upper_width are 1 or more");
    return crop;
  }
};

REGISTER_LAYER(SegData, SegDataLayer);

}  // namespace
}  // namespace crema
