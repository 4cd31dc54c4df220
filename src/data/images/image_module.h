// The interface of libcrema_images.so. It is loaded with the first image: OpenCV's image formats
// bring in some 130 shared libraries, which would dominate the start-up time of every program.
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

// The interface of libcrema_videos.so, loaded with the first video: its formats bring in a hundred
// more.
struct VideoModule {
  std::vector<Image> (*read_frames)(const std::string& path, int64_t first, int64_t count,
                                    int64_t step);
  int64_t (*count_frames)(const std::string& path);
};

// The modules' entry points, looked up by these names.
extern "C" const ImageModule* crema_image_module();
extern "C" const VideoModule* crema_video_module();

}  // namespace crema
