#include "net/picture_preparation.h"

#include "base/error.h"
#include "net/preparation.h"

namespace crema {

namespace {

void check_size(const Transform& transform, const Shape& image, const Shape& sample,
                const PictureRemedies& remedies) {
  const std::string images = cat("images of ", image[2], "x", image[1], " pixels");
  Shape given;
  try {
    given = transform.output(image);
  } catch (const Error& problem) {
    fail(images, ": ", problem.what(), "; ", remedies.resize, " gives images another size");
  }
  require(given == sample, images, " give ", given.brief(), ", but the net's input takes ",
          sample.brief(), "; ", remedies.resize, " changes the first, ", remedies.shape,
          " the second");
}

}  // namespace

PicturePreparation prepare_pictures(const InputPreparation& input, const std::string& folder,
                                    const Shape& sample, bool resize_given,
                                    const PictureRemedies& remedies, Log& log) {
  const int64_t height = input.resize_height(), width = input.resize_width();
  InputPreparation of_files = input;
  if (resize_given) of_files.mutable_transform_param()->clear_resize_param();
  const TransformationParameter parameter = image_transform(of_files, sample);
  // Records have an order of their own, and their size.
  TransformationParameter of_records = image_transform(input, sample);
  of_records.set_bgr2rgb(input.transform_param().bgr2rgb());
  if (input.transform_param().has_color_order())
    of_records.set_color_order(input.transform_param().color_order());
  const Transform records(of_records, false, folder, log);
  const Transform images(parameter, false, folder, silent_log());
  PicturePreparation preparation{{}, images, records};

  ImageReading& reading = preparation.reading;
  reading.color = images.color();
  reading.height = height;
  reading.width = width;
  reading.short_side = input.short_side();
  if (height > 0 && !parameter.has_resize_param()) {
    check_size(images, {parameter.has_gray() ? 3 : sample[0], height, width}, sample, remedies);
    log.info(cat("Images are resized to ", width, "x", height,
                 height != sample[1] || width != sample[2] ? " and cropped" : ""));
  }
  return preparation;
}

}  // namespace crema
