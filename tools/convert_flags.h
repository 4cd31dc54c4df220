// The flags shared by the converters of image lists.
#pragma once

#include "data/convert/convert.h"
#include "tools/flags.h"

namespace crema {

inline ImagesetOptions imageset_options() {
  ImagesetOptions options;
  options.backend = backend_named(FLAGS_backend);
  options.gray = FLAGS_gray;
  options.shuffle = FLAGS_shuffle;
  options.resize_height = FLAGS_resize_height;
  options.resize_width = FLAGS_resize_width;
  options.min_dim = FLAGS_min_dim;
  options.max_dim = FLAGS_max_dim;
  options.max_pixels = FLAGS_max_pixels;
  options.strict = FLAGS_strict;
  options.check_size = FLAGS_check_size;
  options.encoded = FLAGS_encoded;
  options.encode_type = FLAGS_encode_type;
  return options;
}

}  // namespace crema
