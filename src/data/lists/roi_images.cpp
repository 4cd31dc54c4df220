#include "data/lists/roi_images.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/images/pixel_limits.h"
#include "data/transforms/resize_floats.h"

namespace crema {
namespace {

constexpr int64_t kRoiNumbers = 5;

// A pixel's number from a share of the side, without what rounding the share to a float has changed.
double pixel_of(float share, int64_t side) {
  constexpr double kRounding = 1e-3;
  return std::floor(static_cast<double>(share) * static_cast<double>(side) + kRounding);
}

}  // namespace

RoiImages::RoiImages(std::shared_ptr<const Source> source, RoiOptions options)
    : source_(std::move(source)), options_(std::move(options)), mean_(options_.mean) {
  require(!options_.scales.empty(), "there is no scale, the length of an image's shorter side");
  for (const int64_t scale : options_.scales) {
    require(scale > 0 && scale <= options_.max_size, "an image's shorter side is to have ", scale,
            " pixels, which must be 1 or more, and at most max_size, ", options_.max_size);
  }
  require(options_.max_size <= kMaxPixels / options_.max_size, "max_size is ", options_.max_size,
          ", larger than any image");
}

Shape RoiImages::largest() const {
  return {3, *std::max_element(options_.scales.begin(), options_.scales.end()), options_.max_size};
}

std::string RoiImages::describe(const SampleIndex& sample_index) const {
  return source_->describe(sample_index.record_index.index % source_->size());
}

void RoiImages::add_facts(WaitingFacts& facts) const { facts.decodes = facts.resizes = true; }

bool RoiImages::has_objects(const AnnotatedDatum& record) const {
  for (const AnnotationGroup& group : record.annotation_group()) {
    for (const Annotation& annotation : group.annotation()) {
      if (options_.difficult || !annotation.bbox().difficult()) return true;
    }
  }
  return false;
}

void RoiImages::read(int64_t index, AnnotatedDatum& record) const {
  source_->read(index, record);
  require(record.has_datum(),
          "the record has no image inside an AnnotatedDatum message; convert_annoset makes a "
          "database of images with boxes");
  for (int64_t passed = 1; options_.passes_over_empty && !has_objects(record); ++passed) {
    require(passed < source_->size(), "no record of the database has an object",
            options_.difficult ? "" : " that is neither difficult nor a crowd",
            ": there is nothing to train on");
    source_->read((index + passed) % source_->size(), record);
  }
}

std::vector<RoiImages::Box> RoiImages::boxes_of(const AnnotatedDatum& record, int64_t width,
                                                int64_t height) const {
  std::vector<Box> boxes;
  const auto limit = [](double pixel, int64_t side) {
    return std::clamp(pixel, 0.0, static_cast<double>(side - 1));
  };
  const auto first = static_cast<double>(options_.first_pixel);
  for (const AnnotationGroup& group : record.annotation_group()) {
    const int label = group.group_label();
    require(label > 0 && (options_.classes == 0 || label < options_.classes),
            "there is an object of class ", label, ", but num_classes is ", options_.classes,
            options_.classes == 0 ? ": 0 is the background"
                                  : ": classes are from 1 to num_classes - 1");
    for (const Annotation& annotation : group.annotation()) {
      const NormalizedBBox& share = annotation.bbox();
      if (share.difficult() && !options_.difficult) continue;
      require(is_pixel(share.xmin()) && is_pixel(share.ymin()) && is_pixel(share.xmax()) &&
                  is_pixel(share.ymax()),
              "the box of an object of class ", label, " reaches from (", share.xmin(), ", ",
              share.ymin(), ") to (", share.xmax(), ", ", share.ymax(),
              "); corners are shares of the image, mostly from 0 to 1");
      Box box{limit(pixel_of(share.xmin(), width) - first, width),
              limit(pixel_of(share.ymin(), height) - first, height),
              limit(pixel_of(share.xmax(), width) - 1, width),
              limit(pixel_of(share.ymax(), height) - 1, height), label};
      box.x2 = std::max(box.x1, box.x2);
      box.y2 = std::max(box.y1, box.y2);
      boxes.push_back(box);
    }
  }
  return boxes;
}

// The shorter side gets the length that is drawn, unless the longer one had more than max_size then.
double RoiImages::scale(const SampleIndex& sample_index, const Image& image) const {
  Rng rng = rng_of(sample_index);
  const int64_t shorter =
      options_.scales[static_cast<size_t>(rng.pick(static_cast<int64_t>(options_.scales.size())))];
  const auto least = static_cast<double>(std::min(image.height, image.width)),
             most = static_cast<double>(std::max(image.height, image.width)),
             limit = static_cast<double>(options_.max_size);
  const double scale = static_cast<double>(shorter) / least;
  return std::nearbyint(scale * most) > limit ? limit / most : scale;
}

void RoiImages::load(const SampleIndex& sample_index, Sample& sample) const {
  AnnotatedDatum annotated;
  Laps laps(sample.times);
  read(sample_index.record_index.index % source_->size(), annotated);
  laps.end(&SampleTimes::read);
  Record& record = sample.record;
  record.datum.Swap(annotated.mutable_datum());
  decode(record, Color::color);
  to_image(record);
  const Image& image = record.image;
  require(image.channels == 3, "the image has ", image.channels,
          image.channels == 1 ? " channel" : " channels",
          ", but 3 are expected: blue, green and red");
  laps.see_image(image.height, image.width);
  laps.end(&SampleTimes::decode);

  const double scale = this->scale(sample_index, image);
  sample.shape = {3, scaled_side(image.height, scale), scaled_side(image.width, scale)};
  require(sample.shape[1] > 0 && sample.shape[2] > 0, "the image is ", image.height, "x",
          image.width, ": too narrow to be resized to at most ", options_.max_size, " pixels");
  sample.stored_height = image.height;
  sample.stored_width = image.width;
  sample.labels = {static_cast<float>(sample.shape[1]), static_cast<float>(sample.shape[2]),
                   static_cast<float>(scale), 0, 0};
  const auto last = static_cast<double>(image.width - 1);
  for (const Box& box : boxes_of(annotated, image.width, image.height)) {
    const double x1 = is_flipped(sample_index) ? last - box.x2 : box.x1,
                 x2 = is_flipped(sample_index) ? last - box.x1 : box.x2;
    for (const double corner : {x1, box.y1, x2, box.y2})
      sample.labels.push_back(static_cast<float>(corner * scale));
    sample.labels.push_back(static_cast<float>(box.label));
  }
  sample.label_shape = {static_cast<int64_t>(sample.labels.size()) / kRoiNumbers, kRoiNumbers};
}

void RoiImages::write(const SampleIndex& sample_index, Sample& sample, float* data) const {
  const Image& image = sample.record.image;
  resize_floats(image, mean_, scale(sample_index, image), is_flipped(sample_index), data);
}

}  // namespace crema
