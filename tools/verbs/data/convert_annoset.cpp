// `crema convert_annoset ROOT/ LIST DB`: converts images with boxes into a database for AnnotatedData
// layers. As with convert_imageset, the exit code is 0 even when some images had to be left out.
#include "base/error.h"
#include "tools/flags/convert_flags.h"
#include "tools/verb.h"

namespace crema {
namespace {

using ConvertAnnosetFlags =
    FlagsOf<"label_map_file", "anno_format", "anno_type", "label_type", "backend", "gray",
            "shuffle", "check_label", "resize_width", "resize_height", "min_dim", "max_dim",
            "check_size", "encoded", "encode_type", "exif", "max_pixels", "strict", "seed",
            "threads", "overwrite">;

// -label_type is SSD's flag, -anno_format has formats that SSD does not read.
AnnotationFormat format_of_boxes(const VerbCall& call, const ConvertAnnosetFlags& flags) {
  if (const auto format = annotation_format(flags.anno_format)) {
    require(call.given.count("label_type") == 0 || *format == AnnotationFormat::voc, "-label_type ",
            flags.label_type, " and -anno_format ", flags.anno_format,
            " name two formats; keep one of them");
    return *format;
  }
  if (flags.label_type == "xml") return AnnotationFormat::voc;
  if (flags.label_type == "txt") return AnnotationFormat::text;
  if (flags.label_type == "json") return AnnotationFormat::json;
  fail("-label_type ", flags.label_type, ": there are xml, txt and json",
       did_you_mean(flags.label_type, {"xml", "txt", "json"}),
       "; -anno_format coco and -anno_format yolo read others");
}

int run_convert_annoset(const VerbCall& call, const ConvertAnnosetFlags& flags) {
  const std::string &root = call.arguments[0], &list = call.arguments[1],
                    &database = call.arguments[2];
  const ImagesetOptions options =
      imageset_options(call,
                       ImagesetFlags::without<"split", "hdf5_rows", "hdf5_compress", "scale",
                                              "scaled_decoding", "as_stored">(flags),
                       flags.backend);
  if (flags.anno_type == "classification") {
    convert_annoset_of_classes(root, list, database, options, call.log);
    return 0;
  }
  require(flags.anno_type == "detection", "-anno_type ", flags.anno_type,
          ": there are detection and classification",
          did_you_mean(flags.anno_type, {"detection", "classification"}));
  require(!flags.label_map_file.empty(), "-label_map_file is missing: the numbers of the classes");
  convert_annoset(root, list, flags.label_map_file, flags.check_label, database, options, call.log,
                  format_of_boxes(call, flags));
  return 0;
}

REGISTER_VERB(
    convert_annoset,
    {.summary = "makes a database from images with boxes",
     .usage = "[flags] -label_map_file MAP ROOT_FOLDER/ LIST DB",
     .example =
         "crema convert_annoset -label_map_file labelmap.prototxt VOCdevkit/ trainval.txt voc_lmdb",
     .meanings = {{"anno_format",
                   "Where boxes are: voc (LIST has `image annotation.xml`), coco (LIST is "
                   "instances_*.json) or yolo (LIST has `image text`, or `image` with labels/a.txt "
                   "for images/a.jpg). Empty: voc."},
                  {"shuffle", "Shuffle the images."},
                  {"seed", "The seed of -shuffle: the same one gives the same order."}},
     .min_arguments = 3,
     .max_arguments = 3,
     .run = run_convert_annoset});

}  // namespace
}  // namespace crema
