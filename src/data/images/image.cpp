#include "data/images/image.h"

#include <dlfcn.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "data/images/image_header.h"
#include "data/images/image_module.h"
#include "data/images/orientation.h"

namespace crema {
namespace {

template <typename Module>
const Module& load_module(const char* file, const char* entry) {
#ifdef CREMA_OPENCV
  // In this library's folder. By its full path: a search would depend on who intercepts dlopen.
  Dl_info self{};
  dladdr(reinterpret_cast<void*>(&load_module<Module>), &self);
  const std::string path = cat(folder_of(self.dli_fname), "/", file);
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) fail("the part of this program that handles such files is missing: ", dlerror());
  using Entry = const Module* (*)();
  return *reinterpret_cast<Entry>(dlsym(library, entry))();
#else
  static_cast<void>(file), static_cast<void>(entry);
  fail(
      "this program was built without OpenCV and cannot handle image files; build with "
      "-DCREMA_OPENCV=ON");
#endif
}

const ImageModule& images() {
  static const ImageModule& loaded =
      load_module<ImageModule>("libcrema_images.so", "crema_image_module");
  return loaded;
}

const VideoModule& videos() {
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

// What the file says of itself, once it is known to be of a size that is decoded. Needs the module
// first: without it no image is looked at.
ImageHeader checked_header(std::string_view file, int64_t max_pixels) {
  const ImageHeader header = read_image_header(file).value_or(ImageHeader{});
  if (header.height > 0 && header.width > max_pixels / header.height) {
    fail("the image has ", header.width, " x ", header.height, " pixels; at most ", max_pixels,
         " are decoded (-max_pixels of the converters)");
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

void decode_image(std::string_view file, Color color, Image& image, int64_t max_pixels) {
  const ImageModule& module = images();
  const ImageHeader header = checked_header(file, max_pixels);
  JpegRemarks unheard;
  module.decode(file, color, color == Color::as_stored ? 0 : header.orientation, false, image,
                unheard);
}

std::string decode_image(std::string_view file, Color color, const Decoding& how, Image& image) {
  const ImageModule& module = images();
  const ImageHeader header = checked_header(file, how.max_pixels);
  JpegRemarks remarks;
  module.decode(file, color, how.upright ? header.orientation : 0, how.only_check, image, remarks);
  return without_damage(remarks);
}

bool decode_image(std::string_view file, const Decoding& how, Image& image, DeepImage& deep,
                  std::string& remark) {
  const ImageModule& module = images();
  const ImageHeader header = checked_header(file, how.max_pixels);
  const int orientation = how.upright ? header.orientation : 0;
  if (file.substr(0, 3) == "\xFF\xD8\xFF") {
    JpegRemarks remarks;
    module.decode(file, Color::as_stored, orientation, how.only_check, image, remarks);
    remark = without_damage(remarks);
    return false;
  }
  const bool is_deep = module.decode_deep(file, image, deep);
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
