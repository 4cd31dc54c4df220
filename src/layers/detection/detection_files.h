// The detection files that DetectionOutput writes at the end of a test.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "layers/detection/detection.h"
#include "proto/params/forks_detection.pb.h"

namespace crema {

// A line "name height width" of a name_size_file.
struct ImageSize {
  std::string name;
  int height = 0, width = 0;
};
std::vector<ImageSize> read_name_size_file(const std::string& path);

// The box in pixels of the original image, before `resize` (null: it was stretched).
Box in_pixels(const Box& box, int height, int width, const ResizeParameter* resize);

// Collects detections and writes them after every `num_test_image` images: one file per class
// (VOC), or one for all (COCO, ILSVRC).
class DetectionFiles {
 public:
  // Relative paths are also resolved from `folder`. Error for what cannot be read or written.
  DetectionFiles(const SaveOutputParameter& p, const std::string& folder, int classes,
                 int background);

  // Adds the detections of the next image, in the order of the name_size_file. From any thread.
  void add(const std::vector<Detection>& found);

 private:
  struct Line {
    std::string image;
    int label;
    float score, left, top, width, height;
  };
  void write() const;
  std::string voc(int label) const;
  std::string coco() const;
  std::string ilsvrc() const;
  const std::string& name_of(int label) const;

  std::mutex mutex_;
  SaveOutputParameter p_;
  int classes_, background_;
  std::map<int, std::string> names_;
  std::vector<ImageSize> images_;
  size_t each_ = 0, next_ = 0;  // images per test, and the index of the next one
  std::vector<Line> lines_;
};

}  // namespace crema
