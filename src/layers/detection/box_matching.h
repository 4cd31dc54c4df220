// Which boxes belong to which objects, and which of the others count: the host's part of the losses
// of SSD.
#pragma once

#include <map>
#include <vector>

#include "kernels/detection/boxes.h"

namespace crema {

// A box that an annotation names.
struct Object {
  Box box;
  int label = 0;
  bool difficult = false;
  int row = 0;  // of the blob it was read from
};

struct ObjectRule {
  int classes = 0;  // labels are 0 to classes - 1, and not the background
  int background = 0;
  bool use_difficult = true;
};

// The objects of each image, from rows of image, label, instance, x1, y1, x2, y2, difficult. Rows
// of image -1 are none. Error for a label that is no class.
std::map<int, std::vector<Object>> read_objects(const std::vector<float>& rows,
                                                const ObjectRule& rule);

// Whether a detection is right or wrong; neither when it finds an object that does not count.
struct Verdict {
  bool right = false, wrong = true;
};

struct JudgeRule {
  float threshold = 0.5f;     // least overlap of a detection with the object that it finds
  bool use_difficult = true;  // difficult objects count
  float pixel = 0;            // as in kernels/detection/boxes.h
};

// Of each found box, the best first: it is right when the object that it overlaps most was found by
// none before. All are of one image and class.
std::vector<Verdict> judge(const std::vector<Box>& found, const std::vector<Object>& objects,
                           const JudgeRule& rule);

constexpr int kNoObject = -1;  // background
constexpr int kIgnored = -2;   // neither an object's nor background

struct BoxMatches {
  std::vector<int> object;     // of each box: index of its object, or one of the above
  std::vector<float> overlap;  // with the object, or the largest with any
};

struct MatchRule {
  // Besides the best box of each object, all boxes that overlap one at least so much; above 1:
  // none.
  float threshold = 2;
  bool ignore_crossing = false;   // boxes that cross the border of the image are ignored
  bool ignore_difficult = false;  // and those that match difficult objects
  int label = -1;                 // only objects of this class; -1: all
};

// Each object first gets the box that overlaps it most, the best pair of all first.
BoxMatches match_boxes(const std::vector<Object>& objects, const std::vector<Box>& boxes,
                       const MatchRule& rule);

struct MiningRule {
  bool hard_examples = false;  // objects' boxes, too, count only when they are chosen
  float ratio = 3;             // background to objects' boxes; not with hard_examples
  float most_overlap = 0.5f;   // of background; not with hard_examples
  int most = 64;               // with hard_examples
  bool suppress = false;       // boxes that overlap a chosen one, as below
  Suppression suppression;
  int candidates = -1;  // that take part in it; -1: all
};

// Chooses the boxes with the largest loss. Those of objects that are not chosen become ignored;
// returned: background boxes that count. boxes: where suppression looks.
std::vector<int> mine_boxes(const MiningRule& rule, const float* loss,
                            const std::vector<Box>& boxes, BoxMatches& matches);

}  // namespace crema
