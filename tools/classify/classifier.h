// Runs a net over images and reports the classes of each.
#pragma once

#include "net/class_scores.h"
#include "net/net.h"
#include "net/picture_preparation.h"
#include "tools/classify/class_report.h"
#include "tools/classify/classify_inputs.h"

namespace crema {

class Classifier {
 public:
  // `input`: the blob that takes the images.
  Classifier(Net& net, const std::string& input, const ScoreBlob& scores, ClassReport& report,
             Log& log);

  // All images of a source, batch by batch. Images that cannot be read, or whose label is not a
  // class, are logged as errors and skipped.
  void run(const ImageSource& source, const PicturePreparation& preparation);
  int64_t failed() const { return failed_; }

 private:
  void report(const std::vector<LoadedImage>& images, const std::vector<float>& scores);
  // The problem with an image; "": none.
  std::string problem_of(const LoadedImage& image) const;

  Net& net_;
  const std::string input_;
  const ScoreBlob scores_;
  ClassReport& report_;
  Log& log_;
  int64_t batch_ = 0, failed_ = 0;
  uint64_t passes_ = 0;
  Shape sample_;
  std::vector<float> values_;  // of a batch
};

}  // namespace crema
