#include "data/lists/image_files.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/file_kind.h"
#include "base/files.h"
#include "data/loader/balance.h"

namespace crema {

void ImageReading::read(const std::string& path, Color as, Interpolation interpolation,
                        Image& image) const {
  const ImageExtents whole = decode(path, read_file(find(path)), as, interpolation, image);
  resize(whole, interpolation, image);
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

ImageExtents ImageReading::decode(std::string_view file, Color as, Interpolation interpolation,
                                  Image& image) const {
  const auto need = [&](const ImageExtents& whole) {
    // Unchanged pixels must be exactly those of the file.
    if (!scaled || !resizes() || interpolation == Interpolation::nearest) return ImageNeed();
    const ImageExtents first =
        short_side > 0 ? with_short_side(whole) : ImageExtents{whole.channels, height, width};
    return ImageNeed{largest_shrink(whole, first.height, first.width)};
  };
  return decode_needed(file, as, need, image).extents;
}

ImageExtents ImageReading::decode(const std::string& path, const std::string& file, Color as,
                                  Interpolation interpolation, Image& image) const {
  try {
    return decode(std::string_view(file), as, interpolation, image);
  } catch (const Error& problem) {
    const FileKind kind = file_kind(find(path));
    const bool picture = kind.what.find("picture") != std::string::npos || kind.what == kTextKind ||
                         kind.what == kUnknownKind;
    fail(find(path), ": ", problem.what(), picture ? "" : what_it_is(kind));
  }
}

ImageExtents ImageReading::with_short_side(const ImageExtents& whole) const {
  const double factor =
      static_cast<double>(short_side) / static_cast<double>(std::min(whole.height, whole.width));
  const auto scaled_side = [&](int64_t side) {
    return std::max<int64_t>(1, std::llround(static_cast<double>(side) * factor));
  };
  return {whole.channels, scaled_side(whole.height), scaled_side(whole.width)};
}

void ImageReading::resize(const ImageExtents& whole, Interpolation interpolation,
                          Image& image) const {
  if (short_side > 0) {
    const ImageExtents first = with_short_side(whole);
    resize_image(first.height, first.width, image, interpolation);
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

std::optional<int64_t> ImageFiles::class_of(int64_t record) const {
  const std::vector<float>& labels = images_[record].labels;
  return labels.size() == 1 ? class_of_label(labels[0]) : std::nullopt;
}

std::string ImageFiles::how_to_equalize() const {
  return "give new_height and new_width, give transform_param a crop_size, or set batch_size: 1";
}

void ImageFiles::read(const SampleIndex& sample_index, Record& record, Laps& laps) const {
  const int64_t index = sample_index.record_index.index;
  const std::string& path = images_[index].path;
  if (cache_) {
    cache_->begin_sample(sample_index.record_index.epoch);
    std::string none;
    if (cache_->find(index, record, none)) return;
  }
  const bool kept = cache_ && cache_->grows();
  if (kept || reading_.changes()) {
    reading_.read(path, reading_.color, Interpolation::linear, record.image);
    if (kept) cache_->keep(index, record.image);
    return show_image(record);
  }
  const std::string file = reading_.find(path), content = read_file(file);
  laps.end(&SampleTimes::read);
  const auto need = [&](const ImageExtents& whole) {
    return transform_.need(whole, sample_index.draw(), rng_of(sample_index));
  };
  try {
    decode_file(content, reading_.color, need, record);
  } catch (const Error& problem) {
    fail(file, ": ", problem.what());
  }
}

void ImageFiles::add_facts(WaitingFacts& facts) const {
  facts.files = facts.decodes = true;
  facts.dearest_change =
      transform_.changes().dearest(facts.channels, facts.times.height, facts.times.width);
}

void ImageFiles::load(const SampleIndex& sample_index, Sample& sample) const {
  const ListedImage& listed = images_[sample_index.record_index.index];
  Laps laps(sample.times);
  read(sample_index, sample.record, laps);
  laps.end(&SampleTimes::decode);
  laps.see_image(sample.record.height, sample.record.width);
  transform_.augment(sample.record, rng_of(sample_index));
  laps.end(&SampleTimes::change);
  sample.shape = transform_.output(sample.record.shape());
  const int64_t labels = static_cast<int64_t>(listed.labels.size());
  sample.label_shape = labels == 1 ? Shape() : Shape{labels};
}

void ImageFiles::write(const SampleIndex& sample_index, Sample& sample, float* data) const {
  transform_.apply(sample.record, sample_index.draw(), data);
  sample.labels = images_[sample_index.record_index.index].labels;
}

}  // namespace crema
