#include "data/lists/image_files.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"

namespace crema {

void ImageReading::read(const std::string& path, Color as, Interpolation interpolation,
                        Image& image) const {
  decode(path, read_file(find(path)), as, image);
  resize(interpolation, image);
  if (!channel_root.empty()) add_channel(path, interpolation, image);
}

void ImageReading::add_channel(const std::string& path, Interpolation interpolation,
                               Image& image) const {
  const std::string file = find_file(channel_root + as_listed(path, channel_root, folder), folder);
  Image grey;
  try {
    decode_image(read_file(file), Color::gray, grey);
  } catch (const Error& problem) {
    fail(file, ": ", problem.what());
  }
  resize(interpolation, grey);
  require(grey.height == image.height && grey.width == image.width, file, ": has ", grey.height,
          " x ", grey.width, " pixels, but the image that it is a channel of has ", image.height,
          " x ", image.width, "; new_height and new_width make them equal");
  std::vector<uint8_t> interleaved;
  interleaved.reserve(image.pixels.size() + grey.pixels.size());
  for (size_t i = 0; i < grey.pixels.size(); ++i) {
    const auto pixel = image.pixels.begin() + static_cast<std::ptrdiff_t>(i * image.channels);
    interleaved.insert(interleaved.end(), pixel, pixel + image.channels);
    interleaved.push_back(grey.pixels[i]);
  }
  image.pixels = std::move(interleaved);
  ++image.channels;
}

void ImageReading::decode(const std::string& path, const std::string& file, Color as,
                          Image& image) const {
  try {
    decode_image(file, as, image);
  } catch (const Error& problem) {
    fail(find(path), ": ", problem.what());
  }
}

void ImageReading::resize(Interpolation interpolation, Image& image) const {
  if (short_side > 0) {
    const double factor =
        static_cast<double>(short_side) / static_cast<double>(std::min(image.height, image.width));
    const auto scaled = [&](int64_t side) {
      return std::max<int64_t>(1, std::llround(static_cast<double>(side) * factor));
    };
    resize_image(scaled(image.height), scaled(image.width), image, interpolation);
  }
  if (height > 0) resize_image(height, width, image, interpolation);
}

ImageFiles::ImageFiles(const std::string& list, ImageReading reading, Transform transform)
    : ImageFiles(list, read_labelled_list(list), std::move(reading), std::move(transform)) {}

ImageFiles::ImageFiles(const std::string& list, std::vector<ListedImage> images,
                       ImageReading reading, Transform transform)
    : list_(list),
      images_(std::move(images)),
      reading_(std::move(reading)),
      transform_(std::move(transform)) {
  transform_.check_order_of_decoded();
}

std::string ImageFiles::describe(const SampleIndex& sample_index) const {
  return cat(list_, ":", images_[sample_index.record_index.index].line);
}

std::string ImageFiles::how_to_equalize() const {
  return "give new_height and new_width, give transform_param a crop_size, or set batch_size: 1";
}

void ImageFiles::load(const SampleIndex& sample_index, Sample& sample) const {
  const ListedImage& listed = images_[sample_index.record_index.index];
  reading_.read(listed.path, reading_.color, Interpolation::linear, sample.record.image);
  show_image(sample.record);
  transform_.augment(sample.record, rng_of(sample_index));
  sample.shape = transform_.output(sample.record.shape());
  const int64_t labels = static_cast<int64_t>(listed.labels.size());
  sample.label_shape = labels == 1 ? Shape() : Shape{labels};
}

void ImageFiles::write(const SampleIndex& sample_index, Sample& sample, float* data) const {
  transform_.apply(sample.record, sample_index.draw(), data);
  sample.labels = images_[sample_index.record_index.index].labels;
}

}  // namespace crema
