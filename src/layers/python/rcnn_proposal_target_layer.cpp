// rpn.proposal_target_layer.ProposalTargetLayer (py-faster-rcnn, R-FCN): samples regions for
// training and gives them classes and box regression targets.
//   Candidates are the regions and, after them, the objects. From an overlap of fg_thresh on they
//   have their object's class; from bg_thresh_lo to below bg_thresh_hi background, class 0. Up to
//   round(fg_fraction * batch_size) of the former are drawn, background up to batch_size. With
//   batch_size -1 (online hard example mining) all of both are used.
//   target = (shift of the centre / size, log of the size ratio), minus bbox_normalize_means, over
//   bbox_normalize_stds, at the four values of the class; inside weights bbox_inside_weights there,
//   outside weights 1 where those are positive
//   With num_classes 2, or 'agnostic': True, all objects have their targets at values 4 to 7.
// The settings come from its end2end configuration, where bg_thresh_lo is 0 and targets are
// normalized (bbox_normalize_targets_precomputed); param_str may set each by its lower-case name.
// Shapes: regions (R, 5) of image and first and last pixels, all of image 0; objects (G, 5) of box
// and class. Tops of M up to batch_size rows, or R + G with -1, objects first: regions (M, 5, 1,
// 1), classes (M, 1, 1, 1), targets, inside and outside weights (M, 4 * num_classes, 1, 1), as
// R-FCN has them. Computed on the host.
// Parameters: none.
// Gradient: none.
#include <cmath>

#include "layers/python/native.h"
#include "layers/python/rcnn.h"
#include "proto/layer.pb.h"
#include "tensor/part.h"

namespace crema {
namespace {

struct RegionSettings {
  int64_t classes, batch;
  double fraction, thresh, background_high, background_low;
  bool agnostic, normalizes;
  std::vector<double> means, deviations, inside;
};

class RcnnProposalTargetLayer : public Layer {
  Arity bottoms() const override { return {2, 2}; }
  Arity tops() const override { return {5, 5}; }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override {
    return {.dynamic = true, .reads = {false, false}, .works_on_host = true};
  }

  void setup(Context&, const std::vector<Shape>&) override {
    const ParamStr given(message());
    s_.classes = given.needed_integer("num_classes");
    s_.agnostic = given.flag("agnostic", s_.classes == 2);
    s_.batch = given.integer("batch_size", 128);
    s_.fraction = given.number("fg_fraction", 0.25);
    s_.thresh = given.number("fg_thresh", 0.5);
    s_.background_high = given.number("bg_thresh_hi", 0.5);
    s_.background_low = given.number("bg_thresh_lo", 0);
    s_.normalizes = given.flag("bbox_normalize_targets_precomputed", true);
    s_.means = four_numbers(given, "bbox_normalize_means", {0, 0, 0, 0});
    s_.deviations = four_numbers(given, "bbox_normalize_stds", {0.1, 0.1, 0.2, 0.2});
    s_.inside = four_numbers(given, "bbox_inside_weights", {1, 1, 1, 1});
    given.refuse_others();
    require(s_.classes > 1 && s_.classes < 1000000, "num_classes is ", s_.classes,
            ", but must be above 1: the background counts");
    require(s_.batch > 0 || s_.batch == -1, "batch_size is ", s_.batch,
            ", but must be above 0, or -1 for all regions");
    require(s_.fraction >= 0 && s_.fraction <= 1, "fg_fraction is ", s_.fraction,
            ", but must be from 0 to 1");
    for (const double deviation : s_.deviations)
      require(deviation > 0, "bbox_normalize_stds has ", deviation, ", but must be positive");
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    require(bottoms[0].axes() >= 2 && bottoms[0].count(1) == 5, "the regions are ",
            bottoms[0].brief(), ", but must be Rx5: image, left, top, right, bottom");
    require_objects(bottoms[1]);
    // If the thresholds overlap, a region may be drawn twice: as an object and as background.
    const int64_t times = s_.thresh < s_.background_high ? 2 : 1,
                  candidates = times * (bottoms[0][0] + bottoms[1][0]);
    return {tops_of(s_.batch < 0 ? candidates : std::min(candidates, s_.batch)), {}};
  }

  std::vector<Shape> tops_of(int64_t rows) const {
    const int64_t values = 4 * s_.classes;
    std::vector<Shape> tops;
    for (const int64_t each : {int64_t{5}, int64_t{1}, values, values, values})
      tops.push_back({rows, each, 1, 1});
    return tops;
  }

  struct Candidate {
    PixelBox box;
    BestObject best;
  };

  std::vector<Candidate> candidates(Context& context, const Tensor& regions,
                                    const std::vector<LabelledBox>& objects) const {
    const std::vector<float> rows = to_floats(context, regions);
    std::vector<Candidate> all;
    for (size_t i = 0; i + 5 <= rows.size(); i += 5) {
      const float* r = &rows[i];
      require(r[0] == 0, "a region is of image ", r[0],
              ", but these layers take one image at a time, image 0");
      all.push_back({{r[1], r[2], r[3], r[4]}, {}});
    }
    for (const LabelledBox& object : objects) all.push_back({object.box, {}});
    for (Candidate& candidate : all) candidate.best = best_of(candidate.box, objects);
    return all;
  }

  void forward(Context& context, const Forward& pass) const override {
    const std::vector<LabelledBox> objects = objects_of(context, pass.bottom[1]);
    const std::vector<Candidate> all = candidates(context, pass.bottom[0], objects);
    std::vector<int64_t> found, background;
    for (size_t i = 0; i < all.size(); ++i) {
      const double overlap = all[i].best.overlap;
      if (overlap >= s_.thresh) found.push_back(static_cast<int64_t>(i));
      if (overlap >= s_.background_low && overlap < s_.background_high)
        background.push_back(static_cast<int64_t>(i));
    }
    if (s_.batch > 0) {
      const double most = std::nearbyint(s_.fraction * static_cast<double>(s_.batch));
      draw(found, static_cast<size_t>(most), sampling_random(context, *this, pass, 0));
      draw(background, static_cast<size_t>(s_.batch) - found.size(),
           sampling_random(context, *this, pass, 1));
    }
    write(context, pass, all, found, background, objects);
  }

  void write(Context& context, const Forward& pass, const std::vector<Candidate>& all,
             std::vector<int64_t> rows, const std::vector<int64_t>& background,
             const std::vector<LabelledBox>& objects) const {
    const size_t found = rows.size();
    rows.insert(rows.end(), background.begin(), background.end());
    const size_t values = 4 * static_cast<size_t>(s_.classes);
    std::vector<float> regions, labels(rows.size()), targets(rows.size() * values),
        inside(targets.size()), outside(targets.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto& [box, best] = all[rows[i]];
      for (const double value : {0.0, box.x1, box.y1, box.x2, box.y2})
        regions.push_back(static_cast<float>(value));
      if (i >= found || best.object < 0) continue;
      const LabelledBox& object = objects[best.object];
      labels[i] = static_cast<float>(object.label);
      if (object.label <= 0) continue;  // an object of class 0 is background
      require(s_.agnostic || object.label < s_.classes, "an object is of class ", object.label,
              ", but with num_classes ", s_.classes, " must be of 1 to ", s_.classes - 1);
      const BoxShift shift = shift_between(box, object.box);
      const size_t at = i * values + 4 * static_cast<size_t>(s_.agnostic ? 1 : object.label);
      for (size_t c = 0; c < 4; ++c) {
        const double target =
            s_.normalizes ? (shift.v[c] - s_.means[c]) / s_.deviations[c] : shift.v[c];
        targets[at + c] = static_cast<float>(target);
        inside[at + c] = static_cast<float>(s_.inside[c]);
        outside[at + c] = s_.inside[c] > 0 ? 1.f : 0.f;
      }
    }
    std::vector<Shape>& tops = state_of<DynamicTops>(pass).tops;
    tops = tops_of(static_cast<int64_t>(rows.size()));
    const std::vector<float>* const contents[] = {&regions, &labels, &targets, &inside, &outside};
    for (size_t j = 0; j < pass.top.size(); ++j)
      from_floats(context, contents[j]->data(), part(pass.top[j], tops[j]));
  }

  RegionSettings s_{};
};

REGISTER_PYTHON(RcnnProposalTargetLayer, "rpn.proposal_target_layer", "ProposalTargetLayer");

}  // namespace
}  // namespace crema
