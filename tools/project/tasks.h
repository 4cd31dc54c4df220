// The kinds of tasks. Each reads and surveys the data of its form; Error if they cannot be used.
#pragma once

#include <memory>

#include "tools/project/task.h"

namespace crema {

// Pictures in a folder for each class, perhaps below train/ and test/.
std::unique_ptr<Task> class_task(const NewOptions& options, Log& log);
// A table of numbers, a CSV file.
std::unique_ptr<Task> table_task(const NewOptions& options, Log& log);
// Pictures with boxes around objects, of Pascal VOC's, COCO's or YOLO's form; null if the folder has none of them.
std::unique_ptr<Task> box_task(const NewOptions& options, Log& log);
// Pictures and, in another folder, pictures of the same names with the class of each pixel; null likewise.
std::unique_ptr<Task> mask_task(const NewOptions& options, Log& log);

}  // namespace crema
