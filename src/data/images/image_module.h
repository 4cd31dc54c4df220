// What libcrema_images.so offers. It is loaded with the first image: OpenCV's image formats bring
// some 130 shared libraries, which would take most of the start of every program.
#pragma once

#include "data/images/image.h"

namespace crema {

struct ImageModule {
  void (*decode)(std::string_view file, Color color, Image& image);
  void (*resize)(int64_t height, int64_t width, Image& image, Interpolation interpolation);
  void (*scale)(double factor, Image& image);
  void (*change_color)(ColorChange change, Image& image);
  void (*filter)(ImageFilter filter, Image& image);
  std::string (*encode)(const Image& image, const std::string& kind, int quality);
};

// What libcrema_films.so offers, likewise with the first film: its formats bring a hundred more.
struct FilmModule {
  std::vector<Image> (*read_frames)(const std::string& path, int64_t first, int64_t count,
                                    int64_t step);
  int64_t (*count_frames)(const std::string& path);
};

// The modules' one entry each, looked up by these names.
extern "C" const ImageModule* crema_image_module();
extern "C" const FilmModule* crema_film_module();

}  // namespace crema
