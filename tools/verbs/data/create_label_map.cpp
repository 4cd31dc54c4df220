// `crema create_label_map [ROOT/] SOURCE MAP`: the numbers of the classes of a data set, for
// convert_annoset and the layers of detectors.
#include "base/error.h"
#include "tools/flags/convert_flags.h"
#include "tools/verb.h"

namespace crema {
namespace {

using CreateLabelMapFlags = FlagsOf<"anno_format", "include_background", "delimiter", "overwrite">;

int run_create_label_map(const VerbCall& call, const CreateLabelMapFlags& flags) {
  LabelMapOptions options;
  options.format = annotation_format(flags.anno_format);
  options.include_background = flags.include_background;
  options.delimiter = flags.delimiter;
  options.overwrite = flags.overwrite;
  const bool voc = options.format == AnnotationFormat::voc, rooted = call.arguments.size() == 3;
  require(voc == rooted,
          "create_label_map: -anno_format voc takes ROOT_FOLDER/ LIST MAP, where a line "
          "of LIST is `image annotation`; otherwise it is SOURCE MAP");
  create_label_map(rooted ? call.arguments[0] : "", call.arguments[rooted ? 1 : 0],
                   call.arguments.back(), options, call.log);
  return 0;
}

REGISTER_VERB(
    create_label_map,
    {.summary = "numbers the classes of a data set",
     .usage = "[flags] [ROOT_FOLDER/] SOURCE MAP",
     .example =
         "crema create_label_map -anno_format coco instances_train2017.json labelmap.prototxt",
     .meanings = {{"anno_format",
                   "Where the names of the classes are: voc, coco, yolo. Empty: a text with a name "
                   "on each line."}},
     .min_arguments = 2,
     .max_arguments = 3,
     .run = run_create_label_map});

}  // namespace
}  // namespace crema
