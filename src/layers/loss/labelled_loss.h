// Base of losses whose bottom 1 has labels, which must be classes. For .cu files only, like
// device/parallel.h. A LabelledLoss is a TermLoss; loss_layer.h describes its file. Its labels are
// checked on the CPU, and kernels record bad ones on a GPU (kernels/core/labels.h). The layer has
//   shapes(bottoms)   instead of infer(), which adds the note
//   range(x)          the valid labels, unless an image has one label and a score for each class
// and its terms have labels<T>(in), of which loss() calls note() or noted(). hinge_loss_layer.cu is
// an example.
#pragma once

#include <optional>

#include "kernels/labels/labels.h"
#include "layers/loss/loss_layer.h"

namespace crema {

// Labels with the note for those that are no classes; a no-op on the CPU.
template <typename T>
struct NotedLabels : ClassLabels<T> {
  LabelNote record;
  // Notes the label if it is no class.
  CREMA_HD void note(int64_t position) const { noted(position); }
  // The same, and returns at(position).
  CREMA_HD int noted(int64_t position) const {
    const int label = this->at(position);
    if (label == ClassLabels<T>::kBad) record.write(position, this->labels[position]);
    return label;
  }
};

struct LabelRange {
  int64_t classes, each = 1;  // each: labels per image
  std::optional<int> ignored = {};
};

// Also the base of losses that are no TermLoss: their forward() calls check_values().
class LabelledLossLayer : public LossLayer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::loss, .labels = LabelKind::scored};

  virtual Inference shapes(const std::vector<Shape>& bottoms) const = 0;
  // x: the shape of bottom 0.
  virtual LabelRange range(const Shape& x) const { return {x.count(1)}; }

  // The note is the last of the saved tensors.
  Inference infer(const std::vector<Shape>& bottoms) const final {
    Inference made = shapes(bottoms);
    made.saved.push_back({{LabelNote::kCount}, DType::i32, true});
    return made;
  }
  void check_values(const Forward& pass) const override {
    const LabelRange valid = range(pass.bottom[0].shape());
    check_labels(pass.bottom[1], valid.classes, valid.each, valid.ignored);
  }
  void check(Context& context, const Forward& pass) const override {
    check_label_note(context, pass.saved.back());
  }

  template <typename T>
  NotedLabels<T> labels(const LossInput& in) const {
    const LabelRange valid = range(in.bottom[0].shape());
    return {{in.at<T>(1), valid.classes, valid.ignored.has_value(), valid.ignored.value_or(0)},
            {in.saved.back().data<int32_t>(), valid.classes, valid.each, in.pass, in.live_pass}};
  }
};

template <typename Self>
using LabelledLoss = TermLoss<Self, LabelledLossLayer>;

// `what` is bottom 0: "scores".
inline void require_label_per_image(const std::vector<Shape>& bottoms, const char* what) {
  require(bottoms[0].axes() > 0, "the ", what, " are one number, without an axis for the batch");
  require(bottoms[1].count() == bottoms[0][0],
          "there must be one label for each image of the batch, but the ", what, " are ",
          bottoms[0].brief(), " and the labels ", bottoms[1].brief(),
          hint_about_shares(bottoms[1], bottoms[0][0]));
}

}  // namespace crema
