// What a net says about pictures: their classes, boxes around objects, or a mask of classes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "crema.h"

namespace crema {

// Values by name, as a request brings them or a pass gives them. `shape` has the samples first.
struct ServedTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
};

enum class PictureResult { none, classes, boxes, mask };

// What is special about a result: how it is called in messages, and the address that gives it.
struct PictureResultInfo {
  PictureResult result;
  const char *action, *noun;
  std::string_view setting;  // of the address, as in ?top=3; "": it has none
};
constexpr std::array<PictureResultInfo, 3> kPictureResults = {
    {{PictureResult::classes, "classify", "classes", "top"},
     {PictureResult::boxes, "detect", "boxes", "score"},
     {PictureResult::mask, "segment", "a mask", ""}}};
const PictureResultInfo& info_of(PictureResult result);  // not for none

struct PictureLimits {
  size_t top = 5;   // classes at most
  float score = 0;  // the least score of a box
};

class ServedPictures {
 public:
  ServedPictures() = default;  // a net that takes no pictures
  // After a pass of `model` over one sample. Error if the user's names of classes are not those of the net.
  ServedPictures(const Model& model, const PictureOptions& options);

  PictureResult result() const { return result_; }
  // The inputs of a pass over the picture in an image file, in the order of the model's. Error for what is
  // no picture.
  std::vector<std::vector<float>> inputs(std::string_view file) const;
  // The result as JSON. `outputs` are those of one sample; `model` is the model's name.
  std::string json(const std::string& model, const std::vector<ServedTensor>& outputs,
                   const PictureLimits& limits) const;

 private:
  void find_boxes(const Model& model);
  void find_classes(const Model& model);
  void find_mask(const Model& model);
  std::string classes_json(const std::vector<float>& scores, size_t top) const;
  std::string boxes_json(const std::vector<float>& rows, float least) const;
  std::string mask_json(const ServedTensor& output) const;
  // "index":1,"name":"cat"
  std::string class_json(size_t index) const;

  PictureResult result_ = PictureResult::none;
  Model::PictureReader reader_;
  std::vector<BlobInfo> inputs_;
  std::string output_;  // has the result
  std::vector<std::string> names_;
  float box_width_ = 1, box_height_ = 1;  // the picture's size in the units of boxes
};

// Whether an input is Faster R-CNN's facts on the picture, and what they are: the height and the width of the
// input of pictures, and 1 for how the picture was scaled, because boxes count in pixels of that input.
bool is_picture_facts(const BlobInfo& input);
std::vector<float> picture_facts(const std::vector<BlobInfo>& inputs);

}  // namespace crema
