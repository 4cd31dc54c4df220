#include "tools/project/picture_size.h"

#include "base/error.h"
#include "tools/project/net_edits.h"

namespace crema {

namespace {

constexpr int64_t small = 40;  // pixels: such pictures are used as they are
constexpr int64_t of_photos =
    160;  // crops from here on are cut out of pictures that are an eighth larger

}  // namespace

int64_t free_side(const PictureSizes& sizes) {
  if (sizes.median_side <= small)
    return sizes.all_equal && sizes.least_height == sizes.least_width ? sizes.least_width : 32;
  return sizes.median_side <= 80 ? 64 : 96;
}

PictureFit fit_pictures(const NetText& net, const PictureSizes& sizes) {
  const std::vector<int> layers = data_layers(net, "Data", TRAIN);
  require(layers.size() == 1, "this net has ", layers.size(),
          " Data layers for TRAIN; `crema new` can give data to nets with one for each phase");
  const TransformationParameter& transform = net.net().layer(layers[0]).transform_param();
  PictureFit fit;
  fit.gray = sizes.gray && transform.mean_value_size() < 2;
  const int64_t crop = transform.crop_size();
  if (crop >= of_photos) {
    fit.side = crop * 8 / 7;
    fit.why = cat("the net takes crops of ", crop, " pixels");
  } else if (crop > 0) {
    fit.side = crop;
    fit.why = "as the net takes them";
  } else {
    fit.side = free_side(sizes);
    fit.why = "which is near theirs";
  }
  return fit;
}

}  // namespace crema
