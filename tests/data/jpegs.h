// JPEGs of all kinds, which the library's own encoder does not make.
#pragma once

#ifdef CREMA_JPEG
#include <cstdio>
#include <cstdlib>
// Needs <cstdio> before it.
#include <jpeglib.h>
#endif

#include <algorithm>
#include <string>

#include "data/images/image.h"

namespace crema::tests {

// Circles of many sizes and some noise.
inline Image circles(int64_t channels, int64_t height, int64_t width, uint32_t seed = 1) {
  Image image{channels, height, width, {}};
  image.pixels.resize(static_cast<size_t>(channels * height * width));
  const auto next = [&](int64_t count) {
    seed = seed * 1664525 + 1013904223;
    return static_cast<int64_t>(seed >> 8) % count;
  };
  for (int i = 0; i < 30; ++i) {
    const int64_t y = next(height), x = next(width), radius = 1 + next(width / 4 + 1);
    const uint8_t color[3] = {static_cast<uint8_t>(next(256)), static_cast<uint8_t>(next(256)),
                              static_cast<uint8_t>(next(256))};
    for (int64_t row = 0; row < height; ++row) {
      for (int64_t column = 0; column < width; ++column) {
        if ((row - y) * (row - y) + (column - x) * (column - x) >= radius * radius) continue;
        for (int64_t c = 0; c < channels; ++c)
          image.pixels[static_cast<size_t>((row * width + column) * channels + c)] = color[c];
      }
    }
  }
  for (uint8_t& value : image.pixels)
    value = static_cast<uint8_t>(std::min<int64_t>(255, value + next(9)));
  return image;
}

struct JpegKind {
  const char* name;
  int across = 1, down = 1;  // pixels that share a colour
  bool progressive = false;
  unsigned restart = 0;  // the decoder restarts after this many blocks; 0: never
};

constexpr JpegKind kJpegKinds[] = {
    {"4:4:4"},
    {"4:2:2", 2, 1},
    {"4:2:0", 2, 2},
    {"4:4:0", 1, 2},
    {"4:1:1", 4, 1},
    {"4:2:0, progressive", 2, 2, true},
    {"4:4:4, progressive", 1, 1, true},
    {"4:2:0 with restarts", 2, 2, false, 3},
};

#ifdef CREMA_JPEG
inline std::string jpeg_of_kind(const Image& image, const JpegKind& kind, int quality = 90) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;  // one ends the test program
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long count = 0;
  jpeg_mem_dest(&info, &bytes, &count);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.input_components = static_cast<int>(image.channels);
  info.in_color_space = image.channels == 3 ? JCS_EXT_BGR : JCS_GRAYSCALE;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  if (image.channels == 3) {
    info.comp_info[0].h_samp_factor = kind.across;
    info.comp_info[0].v_samp_factor = kind.down;
  }
  info.restart_interval = kind.restart;
  if (kind.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    auto row = const_cast<JSAMPROW>(image.pixels.data() +
                                    info.next_scanline * image.width * image.channels);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string file(reinterpret_cast<const char*>(bytes), count);
  jpeg_destroy_compress(&info);
  std::free(bytes);
  return file;
}
#endif

}  // namespace crema::tests
