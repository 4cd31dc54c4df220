// The interfaces of libcrema_jpeg.so and libcrema_images.so. The first is libjpeg-turbo only; nets
// that read JPEGs and resize nothing need no other. The second is loaded when something needs
// OpenCV, whose image formats bring in about 130 shared libraries: they would dominate the start-up
// time of every program.
#pragma once

#include "data/images/image.h"

namespace crema {

// libjpeg's own remark about a JPEG that it decodes nevertheless; "" for none.
struct JpegRemarks {
  std::string damage;  // pixels are missing
  std::string oddity;  // none are
};

// How much of a JPEG is decoded.
struct JpegParts {
  int shrink = 1;    // 2, 4 or 8: a half, a quarter, an eighth of height and width, rounded up
  ImagePart part{};  // without shrinking; of no height: all
  int64_t height = 0, width = 0;  // the image that this is for; 0: any
};

struct JpegModule {
  // The same values as OpenCV's, not rotated. Rows below the part are not read. False if OpenCV
  // must decide: for files that libjpeg gives up on, files with other than one or three channels,
  // and images of an unexpected size.
  bool (*decode)(std::string_view file, Color color, const JpegParts& parts, Image& image,
                 JpegRemarks& remarks);
};

struct ImageModule {
  // orientation: that of a JPEG, as EXIF counts, which is made upright; 0: nothing is turned. The
  // decoders of other formats know their own, unless it is 0.
  void (*decode)(std::string_view file, Color color, int orientation, Image& image);
  // As stored; with more than 8 bits a channel into `deep`, and then the result is true.
  bool (*decode_deep)(std::string_view file, Image& image, DeepImage& deep);
  void (*resize)(int64_t height, int64_t width, Image& image, Interpolation interpolation);
  void (*resize_deep)(int64_t height, int64_t width, DeepImage& image);
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
extern "C" const JpegModule* crema_jpeg_module();
extern "C" const ImageModule* crema_image_module();
extern "C" const VideoModule* crema_video_module();

}  // namespace crema
