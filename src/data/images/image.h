// Images as bytes: reading and writing image files, colour, size. Only data/images/*_opencv.cpp
// and *_turbo.cpp use the libraries for them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace crema {

// Rows from the top, pixels from the left, channels interleaved: blue, green, red, if stored so
// alpha; or grey alone.
template <typename T>
struct Pixels {
  int64_t channels = 0, height = 0, width = 0;
  std::vector<T> pixels;
};
using Image = Pixels<uint8_t>;
// With more than 8 bits per channel: the numbers in the file.
using DeepImage = Pixels<float>;

enum class Color {
  as_stored,  // 1, 3 or 4 channels, as in the file
  color,      // 3
  gray,       // 1
};

// Larger images are refused before decoding: a file of a few kilobytes may claim to hold an image
// that takes all memory.
constexpr int64_t kMaxPixels = int64_t{1} << 28;
// OpenCV's own limit, above which nothing is decoded or resized.
constexpr int64_t kMaxPixelsEver = int64_t{1} << 30;

// `file` is the content of an image file of any known format. Error when it is not an image, has
// too many pixels, is incomplete, or this build cannot decode it. A JPEG that is damaged in its
// middle is decoded as far as possible, as in Caffe.
void decode_image(std::string_view file, Color color, Image& image,
                  int64_t max_pixels = kMaxPixels);

struct ImageExtents {
  int64_t channels = 0, height = 0, width = 0;
};
struct ImagePart {
  int64_t top = 0, left = 0, height = 0, width = 0;
};

// How much of an image is needed. Only JPEGs can be decoded in part; others are always complete.
struct ImageNeed {
  // 2, 4 or 8: a half, a quarter or an eighth of height and width, rounded up, will do.
  int shrink = 1;
  // If shrink is 1; no height: all of it.
  ImagePart part{};
};
// The largest of 1, 2, 4 and 8 by which an image may shrink and have at least this height and width.
int largest_shrink(const ImageExtents& size, int64_t least_height, int64_t least_width);

// The result of decoding.
struct ImageFound {
  ImageExtents extents;  // size of the whole image
  int shrink = 1;
  ImagePart part;  // the decoded part; at shrink 1
};
// As decode_image() above, but decodes only what is needed: `need` gets the size from the file's
// header. A part has exactly the values of the whole image; the part below is not read, and may be
// damaged.
ImageFound decode_needed(std::string_view file, Color color,
                         const std::function<ImageNeed(const ImageExtents&)>& need, Image& image);

// For converters, which look closer.
struct Decoding {
  int64_t max_pixels = kMaxPixels;
  // Turned as a camera's EXIF data say; the functions above turn all but Color::as_stored.
  bool upright = true;
  // A JPEG only as far as it takes to find damage, in half the time: the image has an eighth of the
  // height and width.
  bool only_check = false;
  // A JPEG may be decoded at a half, a quarter or an eighth of its size, as long as it has at least
  // this height and width; 0: it is decoded as it is.
  int64_t least_height = 0, least_width = 0;
};
// Also throws Error if libjpeg misses data in the middle of a JPEG. Returns its remark about
// harmless oddities, or "".
std::string decode_image(std::string_view file, Color color, const Decoding& how, Image& image);
// As stored. With more than 8 bits per channel it fills `deep` and returns true, otherwise `image`.
bool decode_image(std::string_view file, const Decoding& how, Image& image, DeepImage& deep,
                  std::string& remark);

// The part that begins at row `top` and column `left`; it must be inside the image.
Image cut_image(const Image& image, int64_t top, int64_t left, int64_t height, int64_t width);

// A larger image in which this one begins at row `top` and column `left`. `pixel` has one value per
// channel and fills the rest. Error above kMaxPixels.
Image extend_image(const Image& image, int64_t top, int64_t left, int64_t height, int64_t width,
                   const uint8_t* pixel);

enum class Interpolation { nearest, linear, area, cubic, lanczos };

// Error for an invalid image size.
void resize_image(int64_t height, int64_t width, Image& image,
                  Interpolation interpolation = Interpolation::linear);
void resize_image(int64_t height, int64_t width, DeepImage& image);

// Scales height and width by `factor`, bilinearly; both are rounded, and at least 1.
void scale_image(double factor, Image& image);

// For images of three channels: blue, green, red; hue (0 to 179), saturation and value; or Lab.
enum class ColorChange { bgr_to_hsv, hsv_to_bgr, bgr_to_lab };
void change_color(ColorChange change, Image& image);

// blur: 7 x 7 pixels with a deviation of 1.5. equalize: the brightness histogram, over the image or
// by regions. erode: the minimum of 3 x 3 pixels without the corners.
enum class ImageFilter { blur, equalize, equalize_regions, erode };
void filter_image(ImageFilter filter, Image& image);

// The content of an image file; `kind` is its file extension ("jpg", "png"), `quality` is for JPEG.
std::string encode_image(const Image& image, const std::string& kind, int quality = 95);

// Frames of a video, in colour: `count` of them, starting with number `first`, every `step`th.
// Error when it cannot be read, or has fewer.
std::vector<Image> read_frames(const std::string& path, int64_t first, int64_t count, int64_t step);
// The number of frames of a video.
int64_t count_frames(const std::string& path);

}  // namespace crema
