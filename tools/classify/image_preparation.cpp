#include "tools/classify/image_preparation.h"

#include <optional>

#include "base/error.h"
#include "data/databases/records.h"
#include "data/databases/tar_shards.h"
#include "tools/flags.h"
#include "tools/image_flags.h"

namespace crema {

namespace {

bool crops(const TransformationParameter& p) {
  return p.crop_size() > 0 || p.crop_h() > 0 || p.crop_w() > 0 || p.crop_height() > 0 ||
         p.crop_width() > 0;
}

// Of images, which are decoded blue first, for the order of planes that the net's records have.
void set_color_order(TransformationParameter* p) {
  const bool turned =
      p->bgr2rgb() || (p->has_color_order() && p->color_order() == TransformationParameter::RGB);
  p->clear_color_order();
  p->set_bgr2rgb(p->has_gray() ? p->gray() == TransformationParameter::RGB : turned != FLAGS_rgb);
}

// The size of all records of the layer's database; 0 x 0: they differ; none: it is not at hand.
std::optional<ImageSize> size_of_records(const LayerParameter& layer, const std::string& folder) {
  if (layer.type() != "Data") return {};
  constexpr int64_t kLooked = 8;  // images of different sizes differ early
  try {
    const DataParameter& data = layer.data_param();
    const auto source = open_database(find_source(data.source(), folder), data.backend());
    ImageSize size;
    for (int64_t i = 0; i < kLooked && source->record_index(i).epoch == 0; ++i) {
      Record record;
      source->read(i, record.datum);
      decode(record, Color::as_stored);
      if (i > 0 && (record.height != size.height || record.width != size.width)) return ImageSize();
      size = {record.height, record.width};
      if (!record.datum.encoded()) break;
    }
    return size;
  } catch (const Error&) {
    return {};
  }
}

// To what image files are resized before the transform; 0 x 0: they stay as they are.
ImageSize size_before(const LayerParameter& layer, const std::string& folder, const Shape& sample,
                      const Transform& transform, Log& log) {
  const ImageDataParameter& data = layer.image_data_param();
  if (!FLAGS_resize.empty()) return resize_of_flag();
  if (data.new_height() > 0 && data.new_width() > 0) return {data.new_height(), data.new_width()};
  if (data.short_side() > 0 || layer.transform_param().has_resize_param()) return {};
  if (transform.mean_shape().axes() == 3)
    return {transform.mean_shape()[1], transform.mean_shape()[2]};
  if (crops(layer.transform_param())) {
    if (layer.has_image_data_param()) return {};
    if (const auto size = size_of_records(layer, folder)) return *size;
    log.warning(
        cat("How large the images were that the net learned from is not known, as their "
            "database is not at hand: they are resized to ",
            sample[2], "x", sample[1], "; -resize WIDTHxHEIGHT says otherwise"));
  }
  return {sample[1], sample[2]};
}

void check_size(const Transform& transform, const Shape& image, const Shape& sample) {
  const std::string images = cat("images of ", image[2], "x", image[1], " pixels");
  Shape given;
  try {
    given = transform.output(image);
  } catch (const Error& problem) {
    fail(images, ": ", problem.what(), "; -resize WIDTHxHEIGHT gives images another size");
  }
  require(given == sample, images, " give ", given.brief(), ", but the net's input takes ",
          sample.brief(), "; -resize WIDTHxHEIGHT changes the first, -assume the second");
}

}  // namespace

std::unique_ptr<Dataset> ImagePreparation::dataset(const ImageSource& source) const {
  if (source.database) return std::make_unique<Records>(source.database, records, false);
  return std::make_unique<ImageFiles>("", source.files, reading, images);
}

ImagePreparation prepare_images(const LayerParameter& layer, const std::string& folder,
                                const Shape& sample, Log& log) {
  TransformationParameter parameter = layer.transform_param();
  parameter.clear_mirror();  // at random, also in phase TEST
  set_mean_and_scale_of_flags(&parameter);
  if (!crops(parameter) && (layer.type() == "Input" || !FLAGS_resize.empty())) {
    parameter.set_crop_h(static_cast<uint32_t>(sample[1]));
    parameter.set_crop_w(static_cast<uint32_t>(sample[2]));
  }
  // Of a record: transform_param { gray } makes one of its three.
  const int64_t channels = parameter.has_gray() ? 3 : sample[0];
  parameter.set_force_gray(channels == 1);
  parameter.set_force_color(channels == 3);
  const Transform records(parameter, false, folder, log);
  set_color_order(&parameter);
  const Transform images(parameter, false, folder, silent_log());
  ImagePreparation preparation{{}, images, records};

  const ImageSize size = size_before(layer, folder, sample, records, log);
  ImageReading& reading = preparation.reading;
  reading.color = images.color();
  reading.height = size.height;
  reading.width = size.width;
  if (FLAGS_resize.empty() && size.height == 0)
    reading.short_side = layer.image_data_param().short_side();
  if (size.height > 0 && !layer.transform_param().has_resize_param()) {
    check_size(images, {channels, size.height, size.width}, sample);
    log.info(cat("Images are resized to ", size.width, "x", size.height,
                 size.height != sample[1] || size.width != sample[2] ? " and cropped" : ""));
  }
  return preparation;
}

}  // namespace crema
