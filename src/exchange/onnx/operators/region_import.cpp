// Operators that pool regions of a feature map.
#include "exchange/onnx/operator_import.h"
#include "proto/params/forks_detection.pb.h"

namespace crema {
namespace {

void read_max_roi_pool(OperatorImport& op) {
  const std::vector<int64_t> pooled = op.ints_of("pooled_shape");
  require(op.axes(0) == 4 && op.axes(1) == 2 && op.shape(1)[1] == 5 && pooled.size() == 2,
          "it pools ", op.shape(0).brief(), " at ", op.shape(1).brief());
  op.give(op.layer("ROIPooling", {op.blob(0), op.blob(1)}, [&](LayerParameter* layer) {
    ROIPoolingParameter* const p = layer->mutable_roi_pooling_param();
    p->set_pooled_h(static_cast<uint32_t>(pooled[0]));
    p->set_pooled_w(static_cast<uint32_t>(pooled[1]));
    p->set_spatial_scale(op.float_of("spatial_scale", 1));
  }));
}
IMPORT_OPERATOR(MaxRoiPool, read_max_roi_pool);

// The image of each region is a blob of its own, the first column of the layer's.
void read_roi_align(OperatorImport& op) {
  require(op.string_of("mode", "avg") == "avg", "only mode \"avg\" has a layer");
  const std::string usual = op.opset() < 16 ? "output_half_pixel" : "half_pixel";
  require(op.string_of("coordinate_transformation_mode", usual) == "output_half_pixel",
          "only coordinates \"output_half_pixel\" have a layer");
  require(op.axes(0) == 4 && op.axes(1) == 2 && op.shape(1)[1] == 4 && op.axes(2) == 1, "it pools ",
          op.shape(0).brief(), " at ", op.shape(1).brief());
  const std::string image = op.reshape(op.index_blob(2), {op.shape(2)[0], 1});
  const std::string regions = op.layer("Concat", {image, op.blob(1)});
  op.give(op.layer("ROIAlign", {op.blob(0), regions}, [&](LayerParameter* layer) {
    ROIAlignParameter* const p = layer->mutable_roi_align_param();
    p->set_pooled_h(static_cast<uint32_t>(op.int_of("output_height", 1)));
    p->set_pooled_w(static_cast<uint32_t>(op.int_of("output_width", 1)));
    p->set_spatial_scale(op.float_of("spatial_scale", 1));
    p->set_sampling_ratio(static_cast<int32_t>(op.int_of("sampling_ratio", 0)));
  }));
}
IMPORT_OPERATOR(RoiAlign, read_roi_align);

}  // namespace
}  // namespace crema
