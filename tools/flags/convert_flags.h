// The flags shared by the converters.
#pragma once

#include <charconv>
#include <optional>

#include "base/error.h"
#include "data/convert/convert.h"
#include "tools/flags/flags.h"
#include "tools/verb.h"

namespace crema {

inline double split_of_flag() {
  if (FLAGS_split.empty()) return 0;
  double split = 0;
  const char* const end = FLAGS_split.data() + FLAGS_split.size();
  const auto [rest, problem] = std::from_chars(FLAGS_split.data(), end, split);
  require(problem == std::errc() && rest == end && split > 0, "-split ", FLAGS_split,
          ": expected a fraction below 1, such as 0.9, or a number of records, such as 45000");
  return split;
}

inline ConvertOptions convert_options(const VerbCall& call, const std::string& backend) {
  ConvertOptions options(backend_named(backend));
  for (const char* flag : {"hdf5_rows", "hdf5_compress", "scale"}) {
    require(options.format.backend == DataParameter::HDF5 || call.given.count(flag) == 0, "-", flag,
            ": goes with -backend hdf5; records of ", lower_case(backend),
            " are kept as they are, and transform_param changes them");
  }
  options.format.overwrite = FLAGS_overwrite;
  options.format.rows = FLAGS_hdf5_rows;
  options.format.compression = FLAGS_hdf5_compress;
  options.format.scale = static_cast<float>(FLAGS_scale);
  options.split = split_of_flag();
  options.seed = static_cast<uint64_t>(FLAGS_seed);
  return options;
}

inline ImagesetOptions imageset_options(const VerbCall& call, const std::string& backend) {
  ImagesetOptions options;
  options.to = convert_options(call, backend);
  options.gray = FLAGS_gray;
  options.shuffle = FLAGS_shuffle;
  options.resize_height = FLAGS_resize_height;
  options.resize_width = FLAGS_resize_width;
  options.scaled_decoding = FLAGS_scaled_decoding;
  options.min_dim = FLAGS_min_dim;
  options.max_dim = FLAGS_max_dim;
  options.max_pixels = FLAGS_max_pixels;
  options.strict = FLAGS_strict;
  options.check_size = FLAGS_check_size;
  options.encoded = FLAGS_encoded;
  options.encode_type = FLAGS_encode_type;
  options.exif = FLAGS_exif;
  options.as_stored = FLAGS_as_stored;
  options.threads = FLAGS_threads;
  return options;
}

// -anno_format.
inline std::optional<AnnotationFormat> annotation_format() {
  if (FLAGS_anno_format.empty()) return {};
  if (FLAGS_anno_format == "voc") return AnnotationFormat::voc;
  if (FLAGS_anno_format == "coco") return AnnotationFormat::coco;
  if (FLAGS_anno_format == "yolo") return AnnotationFormat::yolo;
  fail("-anno_format ", FLAGS_anno_format, ": there are voc, coco and yolo",
       did_you_mean(FLAGS_anno_format, {"voc", "coco", "yolo"}));
}

}  // namespace crema
