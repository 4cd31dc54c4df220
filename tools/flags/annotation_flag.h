// The flag that convert_annoset and create_label_map share.
#pragma once

#include <optional>

#include "base/error.h"
#include "data/convert/convert.h"
#include "tools/flags/flags.h"

namespace crema {

inline std::optional<AnnotationFormat> annotation_format() {
  if (FLAGS_anno_format.empty()) return {};
  if (FLAGS_anno_format == "voc") return AnnotationFormat::voc;
  if (FLAGS_anno_format == "coco") return AnnotationFormat::coco;
  if (FLAGS_anno_format == "yolo") return AnnotationFormat::yolo;
  fail("-anno_format ", FLAGS_anno_format, ": there are voc, coco and yolo",
       did_you_mean(FLAGS_anno_format, {"voc", "coco", "yolo"}));
}

}  // namespace crema
