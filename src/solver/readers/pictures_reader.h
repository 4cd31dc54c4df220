// PicturesReader: keeps the last pictures of each kind in a folder, for pages that show a training
// while it runs. FOLDER/filters.json, FOLDER/mistakes.json:
//   {"iteration":100,"title":"First layer: ...","pictures":[{"src":"data:image/png;base64,...",
//   "caption":"3 > 5 98%"}]}
#pragma once

#include <string>

#include "base/log.h"
#include "solver/events/events.h"
#include "solver/readers/record_file.h"

namespace crema {

class PicturesReader : public EventReader {
 public:
  // Makes the folder with the first pictures. If writing fails, it warns, and the training continues
  // with the pictures of before, until the next ones can be written.
  PicturesReader(Log& log, std::string folder) : warnings_(log), folder_(std::move(folder)) {}
  void read(const Event& event) override;

 private:
  WriteWarnings warnings_;
  std::string folder_;
  bool broken_ = false;  // the last ones could not be written
};

}  // namespace crema
