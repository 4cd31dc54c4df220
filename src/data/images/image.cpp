#include "data/images/image.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "base/files.h"
#include "data/images/image_header.h"
#include "data/images/image_module.h"
#include "data/images/orientation.h"
#include "data/images/resize_linear.h"

namespace crema {
namespace {

// In this library's folder. By its full path: a search would depend on who intercepts dlopen.
std::string path_of_module(const char* file) {
  Dl_info self{};
  dladdr(reinterpret_cast<void*>(&path_of_module), &self);
  return cat(folder_of(self.dli_fname), "/", file);
}

template <typename Module>
const Module& load_module(const char* file, const char* entry) {
  const std::string path = path_of_module(file);
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const std::string reason = dlerror();
    // Such as lack of memory. No file that it would read is to be taken for damaged.
    if (file_exists(path)) throw FileError(cat(path, ": cannot be loaded: ", reason));
    fail(file, " decodes such files, but it is missing: ", reason,
         "; copy it from build/lib, where a build with OpenCV has it (wheels and installed "
         "folders read no videos)");
  }
  using Entry = const Module* (*)();
  return *reinterpret_cast<Entry>(dlsym(library, entry))();
}

#ifdef CREMA_JPEG
constexpr bool kReadsJpegs = true;
#else
constexpr bool kReadsJpegs = false;
#endif

void need_opencv() {
#ifndef CREMA_OPENCV
  fail("this program was built without OpenCV and cannot handle image files",
       kReadsJpegs ? ", but for reading JPEGs" : "", "; build with -DCREMA_OPENCV=ON");
#endif
}

constexpr const char* kImageModule = "libcrema_images.so";

const ImageModule& images() {
  need_opencv();
  static const ImageModule& loaded = load_module<ImageModule>(kImageModule, "crema_image_module");
  return loaded;
}

// A folder with libcrema_infer may have been installed without it.
bool has_opencv() {
#ifdef CREMA_OPENCV
  static const bool exists = file_exists(path_of_module(kImageModule));
  return exists;
#else
  return false;
#endif
}

const JpegModule& jpegs() {
  if (!kReadsJpegs) need_opencv();
  static const JpegModule& loaded =
      load_module<JpegModule>("libcrema_jpeg.so", "crema_jpeg_module");
  return loaded;
}

const VideoModule& videos() {
  need_opencv();
  static const VideoModule& loaded =
      load_module<VideoModule>("libcrema_videos.so", "crema_video_module");
  return loaded;
}

}  // namespace

Image cut_image(const Image& image, int64_t top, int64_t left, int64_t height, int64_t width) {
  Image part{image.channels, height, width, {}};
  const int64_t row = width * image.channels;
  part.pixels.reserve(static_cast<size_t>(height * row));
  for (int64_t y = top; y < top + height; ++y) {
    const auto from = image.pixels.begin() + (y * image.width + left) * image.channels;
    part.pixels.insert(part.pixels.end(), from, from + row);
  }
  return part;
}

Image extend_image(const Image& image, int64_t top, int64_t left, int64_t height, int64_t width,
                   const uint8_t* pixel) {
  if (width > kMaxPixels / height) {
    fail("the image cannot be extended to ", width, " x ", height, " pixels; at most ", kMaxPixels,
         " are made of one");
  }
  const int64_t channels = image.channels, row = image.width * channels;
  Image larger{channels, height, width, {}};
  larger.pixels.resize(static_cast<size_t>(height * width * channels));
  for (size_t i = 0; i < larger.pixels.size(); ++i)
    larger.pixels[i] = pixel[i % static_cast<size_t>(channels)];
  for (int64_t y = 0; y < image.height; ++y) {
    std::copy_n(image.pixels.begin() + y * row, row,
                larger.pixels.begin() + ((top + y) * width + left) * channels);
  }
  return larger;
}

namespace {

// Loading OpenCV takes longer than it saves on this many images: 0.3 ms for one of 500 x 375 pixels.
constexpr int kResizedWithoutOpenCv = 64;

bool is_jpeg(std::string_view file) { return file.substr(0, 3) == "\xFF\xD8\xFF"; }

// The file's header, once its size is known to be acceptable. Requires the module first: without it
// no image is opened.
ImageHeader checked_header(std::string_view file, int64_t max_pixels) {
  if (is_jpeg(file)) {
    jpegs();
  } else {
    images();
  }
  const ImageHeader header = read_image_header(file).value_or(ImageHeader{});
  if (header.exceeds(max_pixels)) {
    const bool never = header.exceeds(kMaxPixelsEver);
    fail("the image has ", header.width, " x ", header.height, " pixels; at most ",
         never ? kMaxPixelsEver : max_pixels, " are decoded",
         never ? "" : " (-max_pixels of the converters)");
  }
  require(!header.cut, "the JPEG file is cut short: its end is missing; copy or download it ",
          "again");
  return header;
}

std::string without_damage(const JpegRemarks& remarks) {
  require(remarks.damage.empty(), "the JPEG file is damaged, and pixels are missing (libjpeg: \"",
          remarks.damage, "\"); copy or download it again");
  return remarks.oddity;
}

}  // namespace

int largest_shrink(const ImageExtents& size, int64_t least_height, int64_t least_width) {
  int shrink = 1;
  while (shrink < 8 && size.height >= 2 * shrink * least_height &&
         size.width >= 2 * shrink * least_width)
    shrink *= 2;
  return shrink;
}

namespace {

// By libjpeg if possible. Returns whether it was, and so `parts` had an effect.
bool decode_any(std::string_view file, Color color, int orientation, const JpegParts& parts,
                Image& image, JpegRemarks& remarks) {
  if (is_jpeg(file) && jpegs().decode(file, color, parts, image, remarks)) {
    turn_image(orientation, image);
    return true;
  }
#ifndef CREMA_OPENCV
  require(!is_jpeg(file),
          "libjpeg cannot decode the JPEG file: it is damaged, or has other than 1 or 3 ",
          "channels, which a program built with OpenCV reads");
#endif
  images().decode(file, color, orientation, image);
  return false;
}

// The decoded size; no height if it is unknown.
ImageExtents size_of(const ImageHeader& header, Color color, int orientation) {
  ImageExtents size{color == Color::color  ? 3
                    : color == Color::gray ? 1
                                           : header.channels,
                    header.height, header.width};
  if (orientation >= 5) std::swap(size.height, size.width);
  return size;
}

JpegParts parts_of(const ImageHeader& header, const Decoding& how) {
  JpegParts parts;
  if (how.only_check) {
    parts.shrink = 8;
  } else if (how.least_height > 0 && how.least_width > 0) {
    parts.shrink =
        largest_shrink(size_of(header, Color::color, how.upright ? header.orientation : 0),
                       how.least_height, how.least_width);
  }
  return parts;
}

}  // namespace

void decode_image(std::string_view file, Color color, Image& image, int64_t max_pixels) {
  const ImageHeader header = checked_header(file, max_pixels);
  JpegRemarks unheard;
  decode_any(file, color, color == Color::as_stored ? 0 : header.orientation, {}, image, unheard);
}

ImageFound decode_needed(std::string_view file, Color color,
                         const std::function<ImageNeed(const ImageExtents&)>& need, Image& image) {
  const ImageHeader header = checked_header(file, kMaxPixels);
  const int orientation = color == Color::as_stored ? 0 : header.orientation;
  const ImageExtents size = size_of(header, color, orientation);
  JpegParts parts;
  if (is_jpeg(file) && size.height > 0 && size.channels <= 3) {
    const ImageNeed needed = need(size);
    parts = {needed.shrink, {}, header.height, header.width};
    // For a rotated image the part is known only after rotation.
    if (needed.shrink == 1 && orientation <= 1) parts.part = needed.part;
  }
  JpegRemarks unheard;
  const bool in_part = decode_any(file, color, orientation, parts, image, unheard);
  if (in_part && parts.part.height > 0) return {size, 1, parts.part};
  if (in_part && parts.shrink > 1) return {size, parts.shrink, {0, 0, size.height, size.width}};
  return {{image.channels, image.height, image.width}, 1, {0, 0, image.height, image.width}};
}

std::string decode_image(std::string_view file, Color color, const Decoding& how, Image& image) {
  const ImageHeader header = checked_header(file, how.max_pixels);
  JpegRemarks remarks;
  decode_any(file, color, how.upright ? header.orientation : 0, parts_of(header, how), image,
             remarks);
  return without_damage(remarks);
}

bool decode_image(std::string_view file, const Decoding& how, Image& image, DeepImage& deep,
                  std::string& remark) {
  const ImageHeader header = checked_header(file, how.max_pixels);
  const int orientation = how.upright ? header.orientation : 0;
  if (is_jpeg(file)) {
    JpegRemarks remarks;
    decode_any(file, Color::as_stored, orientation, parts_of(header, how), image, remarks);
    remark = without_damage(remarks);
    return false;
  }
  const bool is_deep = images().decode_deep(file, image, deep);
  if (is_deep) {
    turn_image(orientation, deep);
  } else {
    turn_image(orientation, image);
  }
  return is_deep;
}

void resize_image(int64_t height, int64_t width, Image& image, Interpolation interpolation) {
  if (height < 1 || width < 1 || width > kMaxPixelsEver / height) {
    fail("the image cannot be resized to ", width, " x ", height, " pixels; there must be 1 to ",
         kMaxPixelsEver);
  }
  static std::atomic<int> resized = 0;
  const bool taken = interpolation == Interpolation::linear && image.channels != 2 &&
                     image.channels <= 4 && !image.pixels.empty();
  if (height == image.height && width == image.width) return;
  if (taken && (resized < kResizedWithoutOpenCv || !has_opencv())) {
    ++resized;
    return resize_linear(height, width, image);
  }
  images().resize(height, width, image, interpolation);
}

void resize_image(int64_t height, int64_t width, DeepImage& image) {
  images().resize_deep(height, width, image);
}

void scale_image(double factor, Image& image) { images().scale(factor, image); }

void change_color(ColorChange change, Image& image) { images().change_color(change, image); }

void filter_image(ImageFilter filter, Image& image) { images().filter(filter, image); }

std::string encode_image(const Image& image, const std::string& kind, int quality) {
  return images().encode(image, kind, quality);
}

std::vector<Image> read_frames(const std::string& path, int64_t first, int64_t count,
                               int64_t step) {
  require_regular(path);
  return videos().read_frames(path, first, count, step);
}

int64_t count_frames(const std::string& path) {
  require_regular(path);
  return videos().count_frames(path);
}

}  // namespace crema
