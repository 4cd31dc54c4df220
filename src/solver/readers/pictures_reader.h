// PicturesReader: keeps the last pictures of each kind in a folder, for pages that show a training
// while it runs. FOLDER/filters.json, FOLDER/mistakes.json:
//   {"iteration":100,"title":"First layer: ...","pictures":[{"src":"data:image/png;base64,...",
//   "caption":"3 > 5 98%"}]}
#pragma once

#include <string>

#include "base/log.h"
#include "solver/events.h"

namespace crema {

class PicturesReader : public EventReader {
 public:
  // Makes the folder with the first pictures. If writing fails, it warns once and the training
  // continues without it.
  PicturesReader(Log& log, std::string folder) : log_(log), folder_(std::move(folder)) {}
  void read(const Event& event) override;

 private:
  Log& log_;
  std::string folder_;
  bool broken_ = false;
};

}  // namespace crema
