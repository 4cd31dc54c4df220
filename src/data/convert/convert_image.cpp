#include "data/convert/convert_image.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "base/error.h"
#include "base/files.h"
#include "data/images/image_header.h"

namespace crema {
namespace {

std::string extension_of(const std::string& path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos || path.find('/', dot) != std::string::npos) return "";
  return lower_case(path.substr(dot + 1));
}

bool same_kind(std::string a, std::string b) {
  for (std::string* kind : {&a, &b}) {
    if (*kind == "jpg") *kind = "jpeg";
  }
  return a == b;
}

template <typename T>
void set_extents(const Pixels<T>& image, Datum& datum) {
  datum.set_channels(static_cast<int>(image.channels));
  datum.set_height(static_cast<int>(image.height));
  datum.set_width(static_cast<int>(image.width));
  datum.set_encoded(false);
}

// Plane after plane; `channels` as a constant lets the compiler process several pixels at a time.
template <int kChannels, typename T, typename To>
void write_planes(const Pixels<T>& image, To* to) {
  const int64_t channels = kChannels > 0 ? kChannels : image.channels,
                plane = image.height * image.width;
  for (int64_t c = 0; c < channels; ++c) {
    const T* from = image.pixels.data() + c;
    for (int64_t i = 0; i < plane; ++i) *to++ = static_cast<To>(from[i * channels]);
  }
}

void set_planes(const Image& image, Datum& datum) {
  set_extents(image, datum);
  std::string& planes = *datum.mutable_data();
  planes.resize(image.pixels.size());
  if (image.channels == 3) return write_planes<3>(image, planes.data());
  write_planes<0>(image, planes.data());
}

// Clears everything except the data, whose memory is reused for the next image: a string that grows
// from nothing is filled with zeros first.
void clear_around_data(Datum& datum) {
  std::string data;
  data.swap(*datum.mutable_data());
  datum.Clear();
  data.swap(*datum.mutable_data());
}

void set_planes(const DeepImage& image, Datum& datum) {
  set_extents(image, datum);
  datum.mutable_float_data()->Resize(static_cast<int>(image.pixels.size()), 0);
  write_planes<0>(image, datum.mutable_float_data()->mutable_data());
}

void check_pixels(double width, double height, const char* what, const ImagesetOptions& options) {
  if (width * height > static_cast<double>(options.max_pixels)) {
    fail(what, static_cast<int64_t>(width), " x ", static_cast<int64_t>(height),
         " pixels; at most ", options.max_pixels, " are stored (-max_pixels)");
  }
}

// As in SSD's converter, including rounding.
void limit_sides(const ImagesetOptions& options, Image& image) {
  const auto minimum = static_cast<float>(std::min(image.height, image.width)),
             maximum = static_cast<float>(std::max(image.height, image.width));
  const auto min_dim = static_cast<float>(options.min_dim),
             max_dim = static_cast<float>(options.max_dim);
  float factor = 1;
  if (min_dim > 0 && minimum < min_dim) factor = min_dim / minimum;
  if (max_dim > 0 && std::trunc(factor * maximum) > max_dim) factor = max_dim / maximum;
  if (factor == 1) return;
  check_pixels(std::trunc(static_cast<double>(image.width) * factor),
               std::trunc(static_cast<double>(image.height) * factor),
               "with -min_dim and -max_dim the image has ", options);
  scale_image(factor, image);
}

// Pictures of this size and more are decoded one at a time, so that memory does not depend on the
// number of threads.
constexpr int64_t kLargePixels = int64_t{1} << 25;

std::unique_lock<std::mutex> turn_of_large(const std::optional<ImageHeader>& header) {
  static std::mutex one_at_a_time;
  std::unique_lock<std::mutex> turn(one_at_a_time, std::defer_lock);
  if (header && header->exceeds(kLargePixels - 1)) turn.lock();
  return turn;
}

// Reports what the record does not keep of the file.
void note_losses(const std::optional<ImageHeader>& header, ConvertedImage& converted) {
  if (!header) return;
  converted.bits = header->bits;
  converted.cmyk = header->channels == 4 && header->inks;
  const int color = header->channels > 2 ? 3 : 1;
  if (header->channels > color && !header->inks)
    converted.dropped_channels = header->channels - color;
}

// `decoded`: the decoded size, which may be a fraction, or nothing if the header is enough.
void set_whole(const std::optional<ImageHeader>& header, bool exif, const ImageExtents& decoded,
               ConvertedImage& converted) {
  constexpr int kFirstSideways = 5;  // of EXIF's orientations
  const bool sideways = header && exif && header->orientation >= kFirstSideways;
  converted.whole_height = header ? header->height : decoded.height;
  converted.whole_width = header ? header->width : decoded.width;
  if (sideways) std::swap(converted.whole_height, converted.whole_width);
}

template <typename T>
void set_size(const Pixels<T>& image, ConvertedImage& converted) {
  converted.channels = image.channels;
  converted.height = image.height;
  converted.width = image.width;
}

}  // namespace

void check_options(const ImagesetOptions& options) {
  require(options.max_pixels > 0 && options.max_pixels <= kMaxPixelsEver, "-max_pixels ",
          options.max_pixels, ": must be from 1 to ", kMaxPixelsEver);
  require(options.threads >= 0 && options.threads <= 1024, "-threads ", options.threads,
          ": must be from 1 to 1024, or 0 for one on each processor");
  const bool encoded = options.encoded || !options.encode_type.empty();
  require(!options.encoded || options.to.format.backend != DataParameter::HDF5,
          "-encoded: HDF5Data reads values, not image files; with -backend hdf5 leave it out");
  require(!options.scaled_decoding || (options.resize_height > 0 && options.resize_width > 0),
          "-scaled_decoding: goes with -resize_height and -resize_width");
  require(!options.as_stored || !encoded,
          "-as_stored: encoded files keep all that is in them anyway; leave it or -encoded out");
  require(!options.as_stored || !options.gray,
          "-as_stored and -gray: give one of them; -gray makes one channel of all");
  require(!options.as_stored || (options.min_dim == 0 && options.max_dim == 0),
          "-as_stored: goes with -resize_height and -resize_width, not with -min_dim or -max_dim");
  check_pixels(static_cast<double>(options.resize_width),
               static_cast<double>(options.resize_height),
               "-resize_width and -resize_height ask for images of ", options);
}

ConvertedImage convert_image(const std::string& path, const ImagesetOptions& options,
                             Datum& datum) {
  const std::string file = read_file(path);
  ConvertedImage converted;
  // A thread's images are often of one size, and new memory costs as much as decoding half of one.
  thread_local Image image;
  DeepImage deep;
  bool is_deep = false;
  const bool limit = options.min_dim > 0 || options.max_dim > 0,
             resize = !limit && options.resize_height > 0 && options.resize_width > 0;
  const std::optional<ImageHeader> header = read_image_header(file);
  const std::unique_lock<std::mutex> turn = turn_of_large(header);
  const std::string own = extension_of(path);
  const std::string kind =
      options.encode_type.empty() && options.encoded ? own : options.encode_type;
  // A file in the right format is stored byte for byte, as in Caffe, even with -gray. But readers
  // do not rotate it, so one that is not upright is encoded again.
  const bool right = !kind.empty() && same_kind(own, kind) && !resize && !limit,
             turned = options.exif && header && header->orientation > 1;
  // One that is stored so is only looked through.
  Decoding how{options.max_pixels, options.exif, right && !turned && header};
  if (options.scaled_decoding && resize) {
    how.least_height = options.resize_height;
    how.least_width = options.resize_width;
  }
  const bool gray = options.gray || (right && turned && header->channels == 1);
  try {
    if (options.as_stored) {
      is_deep = decode_image(file, how, image, deep, converted.remark);
    } else {
      converted.remark = decode_image(file, gray ? Color::gray : Color::color, how, image);
    }
    set_whole(header, options.exif,
              is_deep ? ImageExtents{0, deep.height, deep.width}
                      : ImageExtents{0, image.height, image.width},
              converted);
    if (limit) limit_sides(options, image);
  } catch (const FileError& problem) {  // not the image's fault: it is not to be left out
    throw FileError(cat(path, ": ", problem.what()));
  } catch (const Error& problem) {
    fail(path, ": ", problem.what());
  }
  converted.written_anew = right && turned;
  if (!options.as_stored && (!right || turned)) note_losses(header, converted);
  if (is_deep) {
    datum.Clear();
    if (resize) resize_image(options.resize_height, options.resize_width, deep);
    set_size(deep, converted);
    converted.real = true;
    set_planes(deep, datum);
    return converted;
  }
  if (resize) resize_image(options.resize_height, options.resize_width, image);
  set_size(image, converted);
  if (how.only_check) {
    converted.height = header->height;
    converted.width = header->width;
  }
  clear_around_data(datum);
  if (kind.empty()) {
    set_planes(image, datum);
  } else {
    datum.set_data(right && !turned ? file : encode_image(image, kind));
    datum.set_encoded(true);
  }
  if (turn.owns_lock()) image = Image();
  return converted;
}

}  // namespace crema
