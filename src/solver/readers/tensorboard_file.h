// An event file of TensorBoard: records of proto/tensorboard.proto, each with its length and
// checksums around it, as TensorFlow's record files have them.
#pragma once

#include <fstream>
#include <string>

#include "proto/tensorboard.pb.h"

namespace crema {

class TensorboardFile {
 public:
  // Makes the folder and a new file in it, behind those that are there: TensorBoard reads a folder's
  // files in the order of their names. Error when that fails.
  explicit TensorboardFile(const std::string& folder);
  // Adds the time, and writes at once, so that TensorBoard sees it. Error when that fails.
  void write(tensorboard::Event event);

 private:
  std::string path_;
  std::ofstream file_;
};

}  // namespace crema
