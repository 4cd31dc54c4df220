// Fills the inputs of a net that reads no files, such as a deploy file, with sample data.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/net.h"
#include "net/picture_preparation.h"
#include "proto/preparation.pb.h"
#include "tools/classify/classify_inputs.h"

namespace crema {

class CalibrationFeed {
 public:
  // source: "random", or pictures, as `classify` takes them. preparation, folder: of the net's file. Error if
  // there are no pictures.
  CalibrationFeed(const std::string& source, const NetPreparation& preparation, std::string folder);

  // 0: as many as are wanted.
  int64_t images() const { return images_; }
  // The samples of a batch, which begin anew after the last one. Error if the net has not one input of images.
  void fill(Net& net, int64_t batch);

 private:
  struct Pictures {
    std::string input;
    Shape shape;
    std::vector<std::unique_ptr<Dataset>> datasets;  // one for each source
  };
  void prepare(Net& net);

  const bool is_random_;
  NetPreparation preparation_;
  std::string folder_;
  std::vector<ImageSource> sources_;
  int64_t images_ = 0;
  std::optional<Pictures> pictures_;
};

}  // namespace crema
