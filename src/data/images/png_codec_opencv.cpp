#include <png.h>

#include <algorithm>
#include <opencv2/imgcodecs.hpp>
#include <vector>

#include "data/images/codecs.h"

namespace crema {
namespace {

// libpng leaves a function by jumping to where setjmp was called: nothing with a destructor lives in
// the functions that call it.
[[noreturn]] void give_up(png_structp png, png_const_charp message) {
  *static_cast<std::string*>(png_get_error_ptr(png)) = message;
  png_longjmp(png, 1);
}
void ignore(png_structp, png_const_charp) {}

struct PngReader {
  std::string_view rest;
  std::string& reason;
  png_structp png = nullptr;
  png_infop info = nullptr;
  png_uint_32 width = 0, height = 0;
  int bits = 0, type = 0;

  PngReader(std::string_view file, std::string& why) : rest(file), reason(why) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reason, give_up, ignore);
    if (png) info = png_create_info_struct(png);
  }
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  static void read(png_structp png, png_bytep to, size_t count) {
    std::string_view& rest = static_cast<PngReader*>(png_get_io_ptr(png))->rest;
    if (count > rest.size()) png_error(png, "the file is cut short");
    std::copy_n(rest.begin(), count, to);
    rest.remove_prefix(count);
  }

  bool read_header() {
    if (setjmp(png_jmpbuf(png)) != 0) return false;
    png_set_read_fn(png, this, read);
    png_read_info(png, info);
    return png_get_IHDR(png, info, &width, &height, &bits, &type, nullptr, nullptr, nullptr) != 0;
  }

  // OpenCV's rule: as stored, except that grey with alpha and palettes become colour.
  int stored_channels() const {
    if ((type & PNG_COLOR_MASK_ALPHA) != 0) return 4;
    if ((type & PNG_COLOR_MASK_COLOR) == 0) return 1;
    return png_get_valid(png, info, PNG_INFO_tRNS) != 0 ? 4 : 3;
  }

  bool read_pixels(int channels, bool deep, png_bytepp rows) {
    if (setjmp(png_jmpbuf(png)) != 0) return false;
    if (bits == 16) {
      if (deep) {
        png_set_swap(png);
      } else {
        png_set_strip_16(png);
      }
    }
    if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
    if ((type & PNG_COLOR_MASK_COLOR) == 0 && bits < 8) png_set_expand_gray_1_2_4_to_8(png);
    if (channels == 4) {
      if (png_get_valid(png, info, PNG_INFO_tRNS) != 0) png_set_tRNS_to_alpha(png);
    } else {
      png_set_strip_alpha(png);
    }
    if (channels == 1) {
      if ((type & PNG_COLOR_MASK_COLOR) != 0) png_set_rgb_to_gray(png, 1, 0.299, 0.587);
    } else if ((type & PNG_COLOR_MASK_COLOR) != 0) {
      png_set_bgr(png);
    } else {
      png_set_gray_to_rgb(png);
    }
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    if (png_get_rowbytes(png, info) != static_cast<size_t>(width) * channels * (deep ? 2 : 1))
      png_error(png, "its channels are not those that it says it has");
    png_read_image(png, rows);
    png_read_end(png, nullptr);
    return true;
  }
};

struct PngWriter {
  png_structp png = nullptr;
  png_infop info = nullptr;

  explicit PngWriter(std::string* reason) {
    png = png_create_write_struct(PNG_LIBPNG_VER_STRING, reason, give_up, ignore);
    if (png) info = png_create_info_struct(png);
  }
  ~PngWriter() { png_destroy_write_struct(&png, &info); }
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;

  static void append(png_structp png, png_bytep from, size_t count) {
    static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<char*>(from), count);
  }

  // Quickly rather than small, as OpenCV does.
  bool write(png_uint_32 width, png_uint_32 height, int type, png_bytepp rows, std::string* file) {
    if (setjmp(png_jmpbuf(png)) != 0) return false;
    png_set_write_fn(png, file, append, nullptr);
    png_set_compression_level(png, 1);
    png_set_compression_strategy(png, 3);
    png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_SUB);
    png_set_IHDR(png, info, width, height, 8, type, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    png_set_bgr(png);
    png_write_image(png, rows);
    png_write_end(png, info);
    return true;
  }
};

std::vector<png_bytep> rows_of(const cv::Mat& image) {
  std::vector<png_bytep> rows;
  for (int y = 0; y < image.rows; ++y) rows.push_back(const_cast<png_bytep>(image.ptr(y)));
  return rows;
}

}  // namespace

cv::Mat decode_png(std::string_view file, int flags, std::string& reason) {
  PngReader reader(file, reason);
  if (!reader.info || !reader.read_header()) return {};
  const bool as_stored = flags == cv::IMREAD_UNCHANGED;
  const bool deep = as_stored && reader.bits == 16;
  const int channels = as_stored                         ? reader.stored_channels()
                       : (flags & cv::IMREAD_COLOR) != 0 ? 3
                                                         : 1;
  cv::Mat image(static_cast<int>(reader.height), static_cast<int>(reader.width),
                CV_MAKETYPE(deep ? CV_16U : CV_8U, channels));
  std::vector<png_bytep> rows = rows_of(image);
  return reader.read_pixels(channels, deep, rows.data()) ? image : cv::Mat();
}

bool encode_png(const cv::Mat& image, std::string& file, std::string& reason) {
  const int channels = image.channels();
  if (image.depth() != CV_8U || (channels != 1 && channels != 3 && channels != 4)) {
    reason = "a PNG has 1, 3 or 4 channels, the image has " + std::to_string(channels);
    return false;
  }
  const int type = channels == 1   ? PNG_COLOR_TYPE_GRAY
                   : channels == 3 ? PNG_COLOR_TYPE_RGB
                                   : PNG_COLOR_TYPE_RGB_ALPHA;
  PngWriter writer(&reason);
  std::vector<png_bytep> rows = rows_of(image);
  return writer.info &&
         writer.write(static_cast<png_uint_32>(image.cols), static_cast<png_uint_32>(image.rows),
                      type, rows.data(), &file);
}

}  // namespace crema
