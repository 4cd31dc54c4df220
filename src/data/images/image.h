// Pictures as bytes: reading and writing image files, colour, size. The image
// library itself is known to data/*_opencv.cpp only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace crema {

// Rows from the top, pixels from the left, the channels of a pixel together: blue, green, red; or
// grey alone.
struct Image {
  int64_t channels = 0, height = 0, width = 0;
  std::vector<uint8_t> pixels;
};

enum class Color {
  as_stored,  // 1, 3 or 4 channels, as the file has them
  color,      // 3
  gray,       // 1
};

// Larger images are refused before they are decoded: a file of some kilobytes may claim to hold a
// picture that takes all memory.
constexpr int64_t kMostPixels = int64_t{1} << 28;
// OpenCV's own limit, beyond which nothing is decoded or resized.
constexpr int64_t kMostPixelsEver = int64_t{1} << 30;

// `file` is the content of an image file of any known kind. Error when it is none, has too many
// pixels or a part of them is missing, or this build cannot decode.
void decode_image(std::string_view file, Color color, Image& image,
                  int64_t most_pixels = kMostPixels);

// The part that begins at row `top` and column `left`; it must lie inside the image.
Image cut_image(const Image& image, int64_t top, int64_t left, int64_t height, int64_t width);

// A larger image in which this one begins at row `top` and column `left`. `pixel` has a value for
// each channel. Error above kMostPixels.
Image extend_image(const Image& image, int64_t top, int64_t left, int64_t height, int64_t width,
                   const uint8_t* pixel);

enum class Interpolation { nearest, linear, area, cubic, lanczos };

// Error for a size that is no picture's.
void resize_image(int64_t height, int64_t width, Image& image,
                  Interpolation interpolation = Interpolation::linear);

// Height and width times `factor`, rounded to whole pixels but not to none, bilinearly.
void scale_image(double factor, Image& image);

// Of images of three channels: blue, green, red; hue, of 180, saturation and value; or Lab.
enum class ColorChange { bgr_to_hsv, hsv_to_bgr, bgr_to_lab };
void change_color(ColorChange change, Image& image);

// Of 7 x 7 pixels with a deviation of 1.5; the histogram of the brightness spread, over the image
// or over its regions; the least of 3 x 3 pixels without the corners.
enum class ImageFilter { blur, equalize, equalize_regions, erode };
void filter_image(ImageFilter filter, Image& image);

// The content of an image file; `kind` is its name extension ("jpg", "png"), quality that of JPEG.
std::string encode_image(const Image& image, const std::string& kind, int quality = 95);

// Some frames of a film, in colour: `count` of them from number `first` on, every `step`th. Error
// when it cannot be read, or has fewer.
std::vector<Image> read_frames(const std::string& path, int64_t first, int64_t count, int64_t step);
// How many frames a film has.
int64_t count_frames(const std::string& path);

}  // namespace crema
