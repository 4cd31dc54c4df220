// The flags shared by the converters.
#pragma once

#include <charconv>
#include <optional>

#include "base/error.h"
#include "data/convert/convert.h"
#include "tools/verb.h"

namespace crema {

using ConvertFlags = FlagsOf<"overwrite", "split", "seed", "hdf5_rows", "hdf5_compress", "scale">;
using ImagesetFlags =
    FlagsOf<"overwrite", "split", "seed", "hdf5_rows", "hdf5_compress", "scale", "gray", "shuffle",
            "resize_height", "resize_width", "scaled_decoding", "min_dim", "max_dim", "max_pixels",
            "strict", "check_size", "encoded", "encode_type", "exif", "as_stored", "threads">;

// -split; 0 without it.
inline double split_in(const std::string& flag) {
  if (flag.empty()) return 0;
  double split = 0;
  const char* const end = flag.data() + flag.size();
  const auto [rest, problem] = std::from_chars(flag.data(), end, split);
  require(problem == std::errc() && rest == end && split > 0, "-split ", flag,
          ": expected a fraction below 1, such as 0.9, or a number of records, such as 45000");
  return split;
}

inline ConvertOptions convert_options(const VerbCall& call, const ConvertFlags& flags,
                                      const std::string& backend) {
  ConvertOptions options(backend_named(backend));
  for (const char* flag : {"hdf5_rows", "hdf5_compress", "scale"}) {
    require(options.format.backend == DataParameter::HDF5 || call.given.count(flag) == 0, "-", flag,
            ": goes with -backend hdf5; records of ", lower_case(backend),
            " are kept as they are, and transform_param changes them");
  }
  options.format.overwrite = flags.overwrite;
  options.format.rows = flags.hdf5_rows;
  options.format.compression = flags.hdf5_compress;
  options.format.scale = static_cast<float>(flags.scale);
  options.split = split_in(flags.split);
  options.seed = static_cast<uint64_t>(flags.seed);
  return options;
}

inline ImagesetOptions imageset_options(const VerbCall& call, const ImagesetFlags& flags,
                                        const std::string& backend) {
  ImagesetOptions options;
  options.to = convert_options(call, flags, backend);
  options.gray = flags.gray;
  options.shuffle = flags.shuffle;
  options.resize_height = flags.resize_height;
  options.resize_width = flags.resize_width;
  options.scaled_decoding = flags.scaled_decoding;
  options.min_dim = flags.min_dim;
  options.max_dim = flags.max_dim;
  options.max_pixels = flags.max_pixels;
  options.strict = flags.strict;
  options.check_size = flags.check_size;
  options.encoded = flags.encoded;
  options.encode_type = flags.encode_type;
  options.exif = flags.exif;
  options.as_stored = flags.as_stored;
  options.threads = flags.threads;
  return options;
}

// -anno_format.
inline std::optional<AnnotationFormat> annotation_format(const std::string& flag) {
  if (flag.empty()) return {};
  if (flag == "voc") return AnnotationFormat::voc;
  if (flag == "coco") return AnnotationFormat::coco;
  if (flag == "yolo") return AnnotationFormat::yolo;
  fail("-anno_format ", flag, ": there are voc, coco and yolo",
       did_you_mean(flag, {"voc", "coco", "yolo"}));
}

}  // namespace crema
