#include <csetjmp>
#include <cstdio>
#include <cstdlib>

#include "data/images/codecs.h"
// Needs <cstdio> before it.
#include <jpeglib.h>

namespace crema {
namespace {

// Like the decoder of jpeg_turbo.cpp, left by a jump.
struct JpegEncoder : jpeg_compress_struct {
  jpeg_error_mgr errors;
  std::jmp_buf escape;
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  char message[JMSG_LENGTH_MAX] = "";

  JpegEncoder() {
    err = jpeg_std_error(&errors);
    client_data = this;
    errors.error_exit = [](j_common_ptr info) {
      auto* const self = static_cast<JpegEncoder*>(info->client_data);
      self->errors.format_message(info, self->message);
      std::longjmp(self->escape, 1);
    };
    errors.emit_message = [](j_common_ptr, int) {};
    jpeg_create_compress(this);
  }
  ~JpegEncoder() {
    jpeg_destroy_compress(this);
    std::free(bytes);
  }
  JpegEncoder(const JpegEncoder&) = delete;
  JpegEncoder& operator=(const JpegEncoder&) = delete;

  bool encode(const cv::Mat& image, int quality) {
    if (setjmp(escape) != 0) return false;
    jpeg_mem_dest(this, &bytes, &size);
    image_width = static_cast<JDIMENSION>(image.cols);
    image_height = static_cast<JDIMENSION>(image.rows);
    input_components = image.channels();
    in_color_space = image.channels() == 1   ? JCS_GRAYSCALE
                     : image.channels() == 3 ? JCS_EXT_BGR
                                             : JCS_EXT_BGRX;
    jpeg_set_defaults(this);
    jpeg_set_quality(this, quality, TRUE);
    jpeg_start_compress(this, TRUE);
    while (next_scanline < image_height) {
      JSAMPROW row = const_cast<JSAMPROW>(image.ptr(static_cast<int>(next_scanline)));
      jpeg_write_scanlines(this, &row, 1);
    }
    jpeg_finish_compress(this);
    return true;
  }
};

}  // namespace

bool encode_jpeg(const cv::Mat& image, int quality, std::string& file, std::string& reason) {
  const int channels = image.channels();
  if (image.depth() != CV_8U || (channels != 1 && channels != 3 && channels != 4)) {
    reason = "a JPEG has 1 or 3 channels, the image has " + std::to_string(channels);
    return false;
  }
  JpegEncoder encoder;
  if (!encoder.encode(image, quality)) {
    reason = encoder.message;
    return false;
  }
  file.assign(reinterpret_cast<char*>(encoder.bytes), encoder.size);
  return true;
}

}  // namespace crema
