// `crema convert_annoset ROOT/ LIST DB`: converts images with boxes into a database for AnnotatedData
// layers. As with convert_imageset, the exit code is 0 even when some images had to be left out.
#include "base/error.h"
#include "tools/annotation_flag.h"
#include "tools/convert_flags.h"
#include "tools/flags.h"
#include "tools/verb.h"

namespace crema {
namespace {

int run_convert_annoset(const VerbCall& call) {
  require(FLAGS_anno_type == "detection", "-anno_type ", FLAGS_anno_type,
          ": there is detection; convert_imageset makes databases for classification");
  require(
      FLAGS_label_type == "xml", "-label_type ", FLAGS_label_type,
      ": expected xml (Pascal VOC's files); -anno_format coco and -anno_format yolo read others");
  require(!FLAGS_label_map_file.empty(), "-label_map_file is missing: the numbers of the classes");
  convert_annoset(call.arguments[0], call.arguments[1], FLAGS_label_map_file, FLAGS_check_label,
                  call.arguments[2], imageset_options(call), call.log,
                  annotation_format().value_or(AnnotationFormat::voc));
  return 0;
}

REGISTER_VERB(convert_annoset,
              {.summary = "makes a database from images with boxes",
               .usage = "[flags] -label_map_file MAP ROOT_FOLDER/ LIST DB",
               .flags = {"label_map_file", "anno_format",   "anno_type",   "label_type",
                         "backend",        "gray",          "shuffle",     "check_label",
                         "resize_width",   "resize_height", "min_dim",     "max_dim",
                         "check_size",     "encoded",       "encode_type", "exif",
                         "max_pixels",     "strict",        "seed",        "threads",
                         "overwrite"},
               .min_arguments = 3,
               .max_arguments = 3,
               .run = run_convert_annoset});

}  // namespace
}  // namespace crema
