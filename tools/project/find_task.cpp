#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "tools/pages_folder.h"
#include "tools/project/tasks.h"

namespace crema {

std::unique_ptr<Task> task_of(const NewOptions& options, Log& log) {
  if (!folder_exists(options.data)) {
    require(file_exists(options.data), options.data,
            ": there is no such file or folder; give a folder of pictures, or a table (CSV)");
    require(options.task.empty(), "-task ", options.task, ": is for folders, but ", options.data,
            " is a file, which is read as a table");
    return table_task(options, log);
  }
  require(options.label.empty(), "-label ", options.label, ": is for tables, but ", options.data,
          " is a folder");
  const std::vector<std::string> kinds = {"classes", "boxes", "masks"};
  require(
      options.task.empty() || std::find(kinds.begin(), kinds.end(), options.task) != kinds.end(),
      "-task ", options.task, ": there are classes, boxes and masks",
      did_you_mean(options.task, kinds));
  const bool any = options.task.empty();
  if (any || options.task == "boxes") {
    if (std::unique_ptr<Task> task = box_task(options, log)) return task;
    require(
        any, options.data,
        ": no boxes were found in it, of Pascal VOC's form (Annotations/*.xml next to "
        "JPEGImages/), of COCO's (instances_*.json) or of YOLO's (labels/*.txt next to images/)");
  }
  if (any || options.task == "masks") {
    if (std::unique_ptr<Task> task = mask_task(options, log)) return task;
    require(
        any, options.data,
        ": no masks were found in it: pictures in images/, and those of the same names in masks/");
  }
  return class_task(options, log);
}

int64_t training_part(const NewOptions& options, int64_t count) {
  const double part =
      options.split < 1 ? std::round(options.split * static_cast<double>(count)) : options.split;
  require(part >= 1 && part <= static_cast<double>(count - 1), "-split ", options.split, " of the ",
          count, " samples of ", options.data, " leaves none for ",
          part < 1 ? "training" : "testing",
          "; expected a share such as 0.8, or a number of samples");
  return static_cast<int64_t>(part);
}

std::string models_folder() {
  return without_slash(pages_folder("name a net of your own: -model NET.prototxt")) + "/models";
}

}  // namespace crema
