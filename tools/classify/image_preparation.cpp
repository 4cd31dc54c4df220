#include "tools/classify/image_preparation.h"

#include "base/error.h"
#include "data/databases/records.h"
#include "net/preparation.h"

namespace crema {

namespace {

// Images are decoded blue first. `gray` names the order of the records that it makes grey.
bool red_first(const InputPreparation& input) {
  const TransformationParameter& transform = input.transform_param();
  return transform.has_gray() ? transform.gray() == TransformationParameter::RGB
                              : input.channels() == InputPreparation::RGB;
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

ImagePreparation prepare_images(const InputPreparation& input, const std::string& folder,
                                const Shape& sample, bool resize_given, ProgramLog& log) {
  const int64_t height = input.resize_height(), width = input.resize_width();
  const bool resized_later = input.transform_param().has_resize_param() && !resize_given;
  TransformationParameter parameter = input.transform_param();
  if (height > 0 && (height != sample[1] || width != sample[2]) && !crops(parameter) &&
      !resized_later) {
    parameter.set_crop_h(static_cast<uint32_t>(sample[1]));
    parameter.set_crop_w(static_cast<uint32_t>(sample[2]));
  }
  // Channels of a record: transform_param { gray } makes one of its three.
  const int64_t channels = parameter.has_gray() ? 3 : sample[0];
  parameter.set_force_gray(channels == 1);
  parameter.set_force_color(channels == 3);
  const Transform records(parameter, false, folder, log.library());
  parameter.clear_color_order();
  parameter.set_bgr2rgb(red_first(input));
  const Transform images(parameter, false, folder, silent_log());
  ImagePreparation preparation{{}, images, records};

  ImageReading& reading = preparation.reading;
  reading.color = images.color();
  reading.height = height;
  reading.width = width;
  reading.short_side = input.short_side();
  if (height > 0 && !resized_later) {
    check_size(images, {channels, height, width}, sample);
    log.info(cat("Images are resized to ", width, "x", height,
                 height != sample[1] || width != sample[2] ? " and cropped" : ""));
  }
  return preparation;
}

}  // namespace crema
