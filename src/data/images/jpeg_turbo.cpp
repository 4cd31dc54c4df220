// The JPEG module: decodes with libjpeg-turbo directly (data/images/image_module.h). OpenCV, which
// uses it too, does not report missing data, and decodes whole images only.
#include <algorithm>
#include <csetjmp>
#include <cstdio>

#include "data/images/image_module.h"
// This one needs <cstdio> before it,
#include <jpeglib.h>
// and this one needs that one.
#include <jerror.h>

#ifndef JCS_EXTENSIONS
#error "libjpeg-turbo is needed: other libjpegs do not make pixels in the order blue, green, red"
#endif

namespace crema {
namespace {

// libjpeg calls its error handler, which must not return: it jumps. So nothing with a destructor
// lives in the functions that are left this way.
struct Decoder : jpeg_decompress_struct {
  jpeg_error_mgr errors;
  std::jmp_buf escape;
  char damage[JMSG_LENGTH_MAX] = "", oddity[JMSG_LENGTH_MAX] = "";

  Decoder() {
    err = jpeg_std_error(&errors);
    client_data = this;
    errors.error_exit = [](j_common_ptr info) {
      std::longjmp(static_cast<Decoder*>(info->client_data)->escape, 1);
    };
    errors.emit_message = [](j_common_ptr info, int level) {
      if (level < 0) static_cast<Decoder*>(info->client_data)->note();
    };
    // It keeps err and client_data, and can only fail with a different version of the library.
    jpeg_create_decompress(this);
  }
  ~Decoder() { jpeg_destroy_decompress(this); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // The first of each sort is kept.
  void note() {
    bool harmful = false;
    for (const int code : {JWRN_HIT_MARKER, JWRN_HUFF_BAD_CODE, JWRN_JPEG_EOF, JWRN_MUST_RESYNC,
                           JWRN_ARITH_BAD_CODE})
      harmful = harmful || errors.msg_code == code;
    char* const text = harmful ? damage : oddity;
    if (*text == '\0') errors.format_message(reinterpret_cast<j_common_ptr>(this), text);
  }

  bool read_header(std::string_view file) {
    if (setjmp(escape) != 0) return false;
    jpeg_mem_src(this, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    return jpeg_read_header(this, TRUE) == JPEG_HEADER_OK;
  }
  bool calculate_size() {
    if (setjmp(escape) != 0) return false;
    jpeg_calc_output_dimensions(this);
    return true;
  }
  // Pixels next to the part are also decoded, as far as those at its border depend on them; whole
  // columns of blocks are skipped. `row` has room for a row of the image.
  bool read_part(const ImagePart& part, size_t channels, uint8_t* row, uint8_t* to) {
    constexpr int64_t kBeside = 2;
    if (setjmp(escape) != 0) return false;
    jpeg_start_decompress(this);
    const int64_t right = std::min<int64_t>(part.left + part.width + kBeside, output_width);
    auto first = static_cast<JDIMENSION>(std::max<int64_t>(part.left - kBeside, 0));
    auto columns = static_cast<JDIMENSION>(right - first);
    jpeg_crop_scanline(this, &first, &columns);
    if (part.top > 0) jpeg_skip_scanlines(this, static_cast<JDIMENSION>(part.top));
    const size_t bytes = static_cast<size_t>(part.width) * channels;
    const uint8_t* const from = row + static_cast<size_t>(part.left - first) * channels;
    for (int64_t y = 0; y < part.height; ++y) {
      jpeg_read_scanlines(this, &row, 1);
      std::copy_n(from, bytes, to + y * bytes);
    }
    jpeg_abort_decompress(this);
    return true;
  }
  bool read_rows(uint8_t* to, size_t row_bytes) {
    if (setjmp(escape) != 0) return false;
    jpeg_start_decompress(this);
    while (output_scanline < output_height) {
      JSAMPROW row = to + output_scanline * row_bytes;
      jpeg_read_scanlines(this, &row, 1);
    }
    jpeg_finish_decompress(this);
    return true;
  }
};

bool decode(std::string_view file, Color color, const JpegParts& parts, Image& image,
            JpegRemarks& remarks) {
  Decoder decoder;
  if (!decoder.read_header(file)) return false;
  if (decoder.num_components != 1 && decoder.num_components != 3) return false;
  const bool any_size = parts.height == 0;
  if (!any_size && (decoder.image_height != parts.height || decoder.image_width != parts.width))
    return false;
  const bool gray =
      color == Color::gray || (color == Color::as_stored && decoder.num_components == 1);
  decoder.out_color_space = gray ? JCS_GRAYSCALE : JCS_EXT_BGR;
  // All data are read for any size; an eighth takes one value of each block.
  decoder.scale_num = 1;
  decoder.scale_denom = static_cast<unsigned>(parts.shrink);
  if (!decoder.calculate_size()) return false;
  const ImagePart& part = parts.part;
  const bool all = part.height == 0;
  image.channels = gray ? 1 : 3;
  image.height = all ? decoder.output_height : part.height;
  image.width = all ? decoder.output_width : part.width;
  const auto channels = static_cast<size_t>(image.channels);
  const size_t row = static_cast<size_t>(image.width) * channels;
  image.pixels.resize(row * static_cast<size_t>(image.height));
  if (all) {
    if (!decoder.read_rows(image.pixels.data(), row)) return false;
  } else {
    std::vector<uint8_t> whole_row(decoder.output_width * channels);
    if (!decoder.read_part(part, channels, whole_row.data(), image.pixels.data())) return false;
  }
  remarks.damage = decoder.damage;
  remarks.oddity = decoder.oddity;
  return true;
}

constexpr JpegModule kModule = {decode};

}  // namespace

extern "C" const JpegModule* crema_jpeg_module() { return &kModule; }

}  // namespace crema
