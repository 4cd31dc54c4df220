#include "data/lists/annotated.h"

#include <algorithm>

#include "base/error.h"
#include "data/databases/exact_label.h"
#include "data/databases/find_database.h"
#include "data/images/pixel_limits.h"
#include "data/transforms/mosaic.h"

namespace crema {
namespace {

constexpr int64_t kNumbers = 8;  // of a label

std::vector<Object> objects_of(const AnnotatedDatum& record) {
  std::vector<Object> objects;
  for (const AnnotationGroup& group : record.annotation_group()) {
    for (const Annotation& annotation : group.annotation()) {
      const NormalizedBBox& box = annotation.bbox();
      require(is_pixel(box.xmin()) && is_pixel(box.ymin()) && is_pixel(box.xmax()) &&
                  is_pixel(box.ymax()),
              "the box of an object of class ", group.group_label(), " reaches from (", box.xmin(),
              ", ", box.ymin(), ") to (", box.xmax(), ", ", box.ymax(),
              "); corners are shares of the image, mostly from 0 to 1");
      objects.push_back({{box.xmin(), box.ymin(), box.xmax(), box.ymax()},
                         group.group_label(),
                         annotation.instance_id(),
                         box.difficult()});
    }
  }
  return objects;
}

// The part of the image inside the region, in whole pixels.
Image cut_region(const Image& image, const Region& region) {
  const auto pixel = [](float share, int64_t side) {
    return static_cast<int64_t>(share * static_cast<float>(side));
  };
  const int64_t left = pixel(region.xmin, image.width), top = pixel(region.ymin, image.height);
  const int64_t width = std::max<int64_t>(1, pixel(region.width(), image.width)),
                height = std::max<int64_t>(1, pixel(region.height(), image.height));
  return cut_image(image, std::min(top, image.height - height), std::min(left, image.width - width),
                   height, width);
}

}  // namespace

AnnotatedRecords::AnnotatedRecords(std::shared_ptr<const Source> source, Transform transform,
                                   const TransformationParameter& fields,
                                   const AnnotatedDataParameter& parameter)
    : source_(std::move(source)), transform_(std::move(transform)), parameter_(parameter) {
  check_samplers(parameter_.batch_sampler());
  require(!fields.multi_scale() && !fields.fix_crop(),
          "multi_scale and fix_crop do not move boxes along; batch_sampler crops annotated images");
  if (fields.has_emit_constraint())
    constraint_ = std::make_unique<EmitConstraint>(fields.emit_constraint());
  AnnotatedDatum first;
  try {
    read(0, first);
  } catch (const Error& problem) {
    require_records(*source_, RecordKind::annotated);
    fail(source_->describe(0), ": ", problem.what());
  }
  boxes_ = has_boxes(first);
  if (first.datum().encoded()) transform_.check_order_of_decoded();
}

bool AnnotatedRecords::has_boxes(const AnnotatedDatum& record) const {
  return record.has_type() || parameter_.has_anno_type();
}

void AnnotatedRecords::read(int64_t index, AnnotatedDatum& record) const {
  source_->read(index, record);
  require(record.has_datum(),
          "the record has no image inside an AnnotatedDatum message; a database of plain images is "
          "for a Data layer, convert_annoset makes one of annotated images");
}

std::string AnnotatedRecords::how_to_equalize() const {
  return "give transform_param a resize_param, or set batch_size: 1";
}

Shape AnnotatedRecords::joined_label_shape(std::vector<float>& labels) const {
  if (labels.empty()) labels.assign(kNumbers, -1);
  return {1, 1, static_cast<int64_t>(labels.size()) / kNumbers, kNumbers};
}

std::vector<Object> AnnotatedRecords::open(int64_t index, Record& record) const {
  AnnotatedDatum annotated;
  std::string rest;
  if (cache_ && cache_->find(index, record, rest)) {
    require(annotated.ParseFromString(rest), "the cache has lost the record's objects");
    record.label = annotated.datum().label();
    to_image(record);
    return objects_of(annotated);
  }
  read(index, annotated);
  if (boxes_ && !has_boxes(annotated))
    fail("the record has no type of annotation, but ", source_->describe(0), " has boxes");
  record.datum.Swap(annotated.mutable_datum());
  decode(record, transform_.color());
  to_image(record);
  if (cache_ && cache_->grows() && record.datum.encoded()) {
    annotated.mutable_datum()->Clear();
    annotated.mutable_datum()->set_label(record.label);
    cache_->keep(index, record.image, annotated.SerializeAsString());
  }
  return objects_of(annotated);
}

// The other three images may be any records of the source.
void AnnotatedRecords::join(const AugmentMosaic& mosaic, Rng& rng, Image& image,
                            std::vector<Object>& objects) const {
  std::array<BoxedImage, 4> images = {BoxedImage{std::move(image), std::move(objects)}};
  Record record;
  for (size_t i = 1; i < images.size(); ++i) {
    const int64_t index = rng.pick(size());
    try {
      images[i].objects = open(index, record);
      require(record.image.channels == images[0].image.channels, "it has ", record.image.channels,
              " channels, and the one it is to be joined with ", images[0].image.channels,
              "; give transform_param force_color or force_gray");
    } catch (const Error& problem) {
      fail("augment's mosaic takes in ", source_->describe(index), ": ", problem.what());
    }
    images[i].image = std::move(record.image);
  }
  BoxedImage joined = join_four(mosaic, images, rng);
  image = std::move(joined.image);
  objects = std::move(joined.objects);
}

void AnnotatedRecords::load(const SampleIndex& sample_index, Sample& sample) const {
  if (cache_) cache_->begin_sample(sample_index.record_index.epoch);
  std::vector<Object> objects = open(sample_index.record_index.index, sample.record);

  const Augmentation& augmentation = transform_.augmentation();
  Image& image = sample.record.image;
  Rng rng = rng_of(sample_index);
  const AugmentMosaic* const mosaic = transform_.changes().mosaic();
  if (mosaic && rng.chance(mosaic->probability())) join(*mosaic, rng, image, objects);
  augmentation.distort(image, rng);
  const Region shown = augmentation.expand(image, rng);
  objects = crop_objects(objects, shown, constraint_.get());
  const std::vector<Region> regions = sample_regions(parameter_.batch_sampler(), objects, rng);
  if (!regions.empty()) {
    const Region& region = regions[rng.pick(static_cast<int64_t>(regions.size()))];
    image = cut_region(image, region);
    objects = crop_objects(objects, region, constraint_.get());
  }
  augmentation.resize_objects(image.height, image.width, objects);
  augmentation.resize(image, rng);
  augmentation.finish(image, rng);
  const Changes& changes = transform_.changes();
  const Change change = changes.draw(image.height, image.width, rng);
  objects = warp_objects(objects, change.warp, image.height, image.width, constraint_.get());
  changes.apply(change, image, rng);
  show_image(sample.record);
  sample.shape = transform_.output(sample.record.shape());

  const TransformParams& numbers = transform_.numbers();
  const Cut cut = numbers.cut(image.height, image.width, sample_index.draw());
  const auto share = [](int64_t part, int64_t whole) {
    return static_cast<float>(part) / static_cast<float>(whole);
  };
  const int64_t left_of_crop = cut.left - numbers.pad, top_of_crop = cut.top - numbers.pad;
  const Region crop{share(left_of_crop, image.width), share(top_of_crop, image.height),
                    share(left_of_crop + sample.shape[2], image.width),
                    share(top_of_crop + sample.shape[1], image.height)};
  objects = crop_objects(objects, crop, constraint_.get());
  sample.labels.clear();
  if (!boxes_) sample.labels.push_back(exact_label(sample.record.label));
  for (const Object& object : objects) {
    if (!boxes_) break;
    const Region& box = object.box;
    const float left = cut.mirror ? 1 - box.xmax : box.xmin,
                right = cut.mirror ? 1 - box.xmin : box.xmax;
    sample.labels.insert(sample.labels.end(),
                         {static_cast<float>(sample_index.in_batch), exact_label(object.label),
                          static_cast<float>(object.instance), left, box.ymin, right, box.ymax,
                          static_cast<float>(object.difficult)});
  }
}

void AnnotatedRecords::write(const SampleIndex& sample_index, Sample& sample, float* data) const {
  transform_.apply(sample.record, sample_index.draw(), data);
}

}  // namespace crema
