// ImageNotes: what a converter reports once about many images, when all are done.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/log.h"
#include "data/convert/convert_image.h"

namespace crema {

class ImageNotes {
 public:
  // as_stored: each image has the channels and numbers of its file, and they may differ.
  explicit ImageNotes(bool as_stored) : as_stored_(as_stored) {}

  // In the order in which the images are stored.
  void add(const std::string& path, const ConvertedImage& image);
  // A line for each kind of note, with the first image's path and the number of the others.
  void say(Log& log) const;

 private:
  struct Note {
    std::string first;  // PATH: and what there is to say of it
    int64_t count = 0;
    const char* hint = "";
  };
  void note(int kind, const std::string& text, const char* hint);
  bool as_stored_;
  ConvertedImage first_;  // its channels are 0 as long as there is none
  std::map<int, Note> notes_;
};

}  // namespace crema
