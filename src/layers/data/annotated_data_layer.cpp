// AnnotatedData: images with object boxes, from an LMDB or LevelDB of AnnotatedDatum messages,
// repeating endlessly (SSD).
//
//   data[i]  = transform(image of record (n * batch_size + i) mod records)
//   label[r] = (i, class, instance, xmin, ymin, xmax, ymax, difficult) of the r-th object of the
//              batch, corners relative to the visible part of its image
//   where n counts the batches
//
// Shapes: no bottoms; tops data (batch_size, C, H, W) and, if there is a second top, label (1, 1,
// R, 8), or (batch_size) if the records have a class and no objects.
//
// Parameters: data_param: source, backend, batch_size, prefetch, shuffle, rand_skip, threads, cache
// as for Data. annotated_data_param: batch_sampler, how to sample regions of an image, one of which
// is used (the whole image if none is found); anno_type, for records without their own.
// transform_param, in this order: augment's mosaic, which joins the image with three of any other
// records, distort_param, expand_param, the sampled region, resize_param, the rest of augment,
// crop, mirror, mean and scale; emit_constraint decides which objects count as visible in a part of
// the image. augment moves the boxes along with the pixels.
//
// R grows with the largest number of objects in a batch so far; unused rows are -1, as in a batch
// without objects. Readers skip rows whose first value is -1.
//
// Gradient: none.
#include "base/error.h"
#include "base/files.h"
#include "data/lists/annotated.h"
#include "layers/data/loader_layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class AnnotatedDataLayer : public LoaderLayer {
 public:
  void open(Context& context) override { source_ = open_source(context); }

  void setup(Context& context, const std::vector<Shape>&) override {
    const DataParameter& data = params<DataParameter>();
    const TransformationParameter& fields = params<TransformationParameter>();
    const LoaderOptions options = database_options(context);
    const auto records = std::make_shared<AnnotatedRecords>(
        source_, Transform(fields, training(), folder(), context.log()), fields,
        params<AnnotatedDataParameter>());
    records->use_cache(image_cache(context, data, source_->path()));
    start(context, records, options);
    records_ = data.backend() == DataParameter::LMDB ? source_->size() : 0;
  }

  int64_t records() const override { return records_; }

 private:
  std::shared_ptr<const Source> source_;
  int64_t records_ = 0;
};

REGISTER_LAYER(AnnotatedData, AnnotatedDataLayer);

}  // namespace
}  // namespace crema
