#include "layers/detection/multibox_assignment.h"

#include "kernels/core/threads.h"

namespace crema {

BoxCoding box_coding(PriorBoxParameter::CodeType type) {
  switch (type) {
    case PriorBoxParameter::CENTER_SIZE:
      return BoxCoding::center_size;
    case PriorBoxParameter::CORNER_SIZE:
      return BoxCoding::corner_size;
    default:
      return BoxCoding::corner;
  }
}

MultiBoxAssigner::MultiBoxAssigner(const MultiBoxLossParameter& p,
                                   MultiBoxLossParameter::MiningType mining)
    : p_(p),
      mining_(mining),
      classes_(static_cast<int>(p.num_classes())),
      background_(static_cast<int>(p.background_label_id())),
      each_(p.share_location() ? 1 : classes_) {}

std::vector<Box> MultiBoxAssigner::decoded(const MultiBoxAssignment& a, int64_t image,
                                           int64_t k) const {
  const int64_t count = static_cast<int64_t>(a.priors.size());
  const bool divided = !p_.encode_variance_in_target();
  std::vector<Box> boxes(count);
  for (int64_t i = 0; i < count; ++i) {
    const float* x = a.predictions.data() + ((image * count + i) * each_ + k) * 4;
    boxes[i] = decode(box_coding(p_.code_type()), a.priors[i],
                      divided ? a.variances[i] : BoxVariances(), {x[0], x[1], x[2], x[3]});
  }
  return boxes;
}

MatchRule MultiBoxAssigner::match_rule() const {
  MatchRule rule;
  if (p_.match_type() == MultiBoxLossParameter::PER_PREDICTION)
    rule.threshold = p_.overlap_threshold();
  rule.ignore_crossing = p_.ignore_cross_boundary_bbox();
  rule.ignore_difficult = p_.ignore_difficult_gt();
  return rule;
}

MiningRule MultiBoxAssigner::mining_rule() const {
  MiningRule rule;
  rule.hard_examples = mining_ == MultiBoxLossParameter::HARD_EXAMPLE;
  rule.ratio = p_.neg_pos_ratio();
  rule.max_overlap = p_.neg_overlap();
  rule.maximum = p_.sample_size();
  rule.suppress = p_.has_nms_param() && p_.nms_param().nms_threshold() > 0;
  rule.suppression.threshold = p_.nms_param().nms_threshold();
  if (p_.nms_param().has_top_k()) rule.candidates = p_.nms_param().top_k();
  return rule;
}

void MultiBoxAssigner::match(MultiBoxAssignment& a, int64_t image) const {
  const std::vector<Object>& objects = a.objects.at(static_cast<int>(image));
  MatchRule rule = match_rule();
  BoxMatches* found = a.found.data() + image * each_;
  if (p_.use_prior_for_matching()) {
    const BoxMatches all = match_boxes(objects, a.priors, rule);
    for (int64_t k = 0; k < each_; ++k) {
      found[k] = all;
      if (each_ == 1) continue;
      for (int& object : found[k].object) {
        if (object >= 0 && objects[object].label != k) object = kNoObject;
      }
    }
    return;
  }
  for (int64_t k = 0; k < each_; ++k) {
    if (each_ > 1 && k == background_) continue;
    rule.label = each_ > 1 ? static_cast<int>(k) : -1;
    found[k] = match_boxes(objects, decoded(a, image, k), rule);
  }
}

// Writes an image's matches and labels in the form of MultiBoxTerms. counts: the background priors
// that count; null: all.
void MultiBoxAssigner::write(MultiBoxAssignment& a, int64_t image,
                             const std::vector<int>* counts) const {
  const int64_t count = static_cast<int64_t>(a.priors.size());
  const auto objects = a.objects.find(static_cast<int>(image));
  int32_t* labels = a.labels.data() + image * count;
  std::fill_n(labels, count, counts ? kUncounted : background_);
  for (int i : counts ? *counts : std::vector<int>()) labels[i] = background_;
  for (int64_t k = 0; k < each_; ++k) {
    const std::vector<int>& found = a.found[image * each_ + k].object;
    for (size_t i = 0; i < found.size(); ++i) {
      int32_t& match = a.matches[(image * count + i) * each_ + k];
      match = -1;
      if (found[i] == kIgnored && p_.ignore_difficult_gt()) labels[i] = kUncounted;
      if (found[i] < 0) continue;
      const Object& object = objects->second[found[i]];
      match = object.row;
      labels[i] = p_.map_object_to_agnostic() ? background_ + 1 : object.label;
    }
  }
}

MultiBoxAssignment MultiBoxAssigner::assign(Context& context,
                                            const std::vector<Tensor>& bottom) const {
  MultiBoxAssignment a;
  const ObjectRule objects{classes_, background_, p_.use_difficult_gt()};
  a.objects = read_objects(to_floats(context, bottom[3]), objects);
  const std::vector<float> numbers = to_floats(context, bottom[2]);
  const int64_t count = prior_count(bottom[2].shape()), images = bottom[0].shape()[0];
  for (const float* x = numbers.data(); x < numbers.data() + count * 4; x += 4) {
    const float* v = x + count * 4;
    a.priors.push_back({x[0], x[1], x[2], x[3]});
    a.variances.push_back({{v[0], v[1], v[2], v[3]}});
  }
  const bool suppresses = mining_ != MultiBoxLossParameter::NONE && p_.has_nms_param();
  if (!p_.use_prior_for_matching() || (suppresses && !p_.use_prior_for_nms()))
    a.predictions = to_floats(context, bottom[0]);
  a.found.resize(images * each_);
  a.matches.assign(images * count * each_, -1);
  a.labels.resize(images * count);
  RegionError error;
#pragma omp parallel for schedule(dynamic) if (images * count > 4096)
  for (int64_t image = 0; image < images; ++image) {
    error.run([&] {
      if (a.objects.count(static_cast<int>(image))) match(a, image);
      write(a, image, nullptr);
    });
  }
  error.rethrow();
  return a;
}

void MultiBoxAssigner::mine(MultiBoxAssignment& a, const std::vector<float>& losses) const {
  const MiningRule rule = mining_rule();
  const int64_t count = static_cast<int64_t>(a.priors.size());
  const int64_t images = static_cast<int64_t>(a.found.size());
  RegionError error;
#pragma omp parallel for schedule(dynamic) if (images * count > 4096)
  for (int64_t image = 0; image < images; ++image) {
    error.run([&] {
      std::vector<int> background;
      if (a.objects.count(static_cast<int>(image))) {
        const bool by_prediction = rule.suppress && !p_.use_prior_for_nms();
        background = mine_boxes(rule, losses.data() + image * count,
                                by_prediction ? decoded(a, image, 0) : a.priors, a.found[image]);
      }
      write(a, image, &background);
    });
  }
  error.rethrow();
}

}  // namespace crema
