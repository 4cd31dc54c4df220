// Matching of boxes to objects and hard-negative mining: the host's part of SSD's losses.
#pragma once

#include <map>
#include <vector>

#include "kernels/detection/boxes.h"

namespace crema {

// An annotated ground-truth box.
struct Object {
  Box box;
  int label = 0;
  bool difficult = false;
  int row = 0;  // the blob that it was read from
};

struct ObjectRule {
  int classes = 0;  // labels are 0 to classes - 1, except the background
  int background = 0;
  bool use_difficult = true;
};

// The objects of each image, from rows of image, label, instance, x1, y1, x2, y2, difficult. Rows
// with image -1 are padding. Error for a label out of range.
std::map<int, std::vector<Object>> read_objects(const std::vector<float>& rows,
                                                const ObjectRule& rule);

// Whether a detection is right or wrong; neither if it finds an object that does not count.
struct Verdict {
  bool right = false, wrong = true;
};

struct JudgeRule {
  float threshold = 0.5f;     // minimum overlap of a detection with the object that it finds
  bool use_difficult = true;  // difficult objects count
  float pixel = 0;            // as in kernels/detection/boxes.h
};

// A verdict for each found box, in order of decreasing score: a box is right if no earlier box
// found the object that it overlaps most. All are of one image and class.
std::vector<Verdict> judge(const std::vector<Box>& found, const std::vector<Object>& objects,
                           const JudgeRule& rule);

constexpr int kNoObject = -1;  // background
constexpr int kIgnored = -2;   // neither matched nor background

struct BoxMatches {
  std::vector<int> object;     // per box: index of its object, or one of the above
  std::vector<float> overlap;  // with its object, or the maximum over all objects
};

struct MatchRule {
  // In addition to the best box of each object, all boxes that overlap an object at least this
  // much; above 1: none.
  float threshold = 2;
  bool ignore_crossing = false;   // boxes that cross the border of the image are ignored
  bool ignore_difficult = false;  // also those that match difficult objects
  int label = -1;                 // only objects of this class; -1: all
};

// Each object first gets the box that overlaps it most, greedily from the best pair on.
BoxMatches match_boxes(const std::vector<Object>& objects, const std::vector<Box>& boxes,
                       const MatchRule& rule);

struct MiningRule {
  bool hard_examples = false;  // matched boxes, too, count only if chosen
  float ratio = 3;             // background to matched boxes; not with hard_examples
  float max_overlap = 0.5f;    // of background; not with hard_examples
  int maximum = 64;            // with hard_examples
  bool suppress = false;       // drop boxes that overlap a chosen one (NMS)
  Suppression suppression;
  int candidates = -1;  // of NMS; -1: all
};

// Chooses the boxes with the largest loss. Matched boxes that are not chosen become ignored;
// returns the background boxes that count. boxes: coordinates for the NMS.
std::vector<int> mine_boxes(const MiningRule& rule, const float* loss,
                            const std::vector<Box>& boxes, BoxMatches& matches);

}  // namespace crema
