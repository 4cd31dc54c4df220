// An event file of TensorBoard: records of proto/tensorboard.proto, each with its length and
// checksums around it, as TensorFlow's record files have them.
#pragma once

#include <string>

#include "proto/tensorboard.pb.h"

namespace crema {

// Makes the folder, and names a new file in it, behind those that are there: TensorBoard reads a
// folder's files in the order of their names. Error when that fails.
std::string new_tensorboard_file(const std::string& folder);
// The first event of a file.
tensorboard::Event tensorboard_version();
// The event as it is in a file, with the time of now.
std::string tensorboard_record(tensorboard::Event event);

}  // namespace crema
