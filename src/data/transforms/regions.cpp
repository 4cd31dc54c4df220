#include "data/transforms/regions.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace crema {
namespace {

float common_area(const Region& a, const Region& b) {
  const Region common{std::max(a.xmin, b.xmin), std::max(a.ymin, b.ymin), std::min(a.xmax, b.xmax),
                      std::min(a.ymax, b.ymax)};
  return common.area();
}

bool keeps(const EmitConstraint& constraint, const Region& crop, const Region& box) {
  if (constraint.emit_type() == EmitConstraint::MIN_OVERLAP)
    return coverage(box, crop) > constraint.emit_overlap();
  const float x = (box.xmin + box.xmax) / 2, y = (box.ymin + box.ymax) / 2;
  return x >= crop.xmin && x <= crop.xmax && y >= crop.ymin && y <= crop.ymax;
}

// At least one of the objects must satisfy all of the measures that are given.
bool fulfils(const SampleConstraint& constraint, const Region& sample,
             const std::vector<Object>& objects) {
  const bool by_overlap =
      constraint.has_min_jaccard_overlap() || constraint.has_max_jaccard_overlap();
  const bool by_sample =
      constraint.has_min_sample_coverage() || constraint.has_max_sample_coverage();
  const bool by_object =
      constraint.has_min_object_coverage() || constraint.has_max_object_coverage();
  if (!by_overlap && !by_sample && !by_object) return true;
  const auto inside = [](float value, bool has_min, float minimum, bool has_max, float maximum) {
    return (!has_min || value >= minimum) && (!has_max || value <= maximum);
  };
  const auto object_fulfils = [&](const Object& object) {
    const Region& box = object.box;
    return (!by_overlap ||
            inside(overlap(sample, box), constraint.has_min_jaccard_overlap(),
                   constraint.min_jaccard_overlap(), constraint.has_max_jaccard_overlap(),
                   constraint.max_jaccard_overlap())) &&
           (!by_sample ||
            inside(coverage(sample, box), constraint.has_min_sample_coverage(),
                   constraint.min_sample_coverage(), constraint.has_max_sample_coverage(),
                   constraint.max_sample_coverage())) &&
           (!by_object ||
            inside(coverage(box, sample), constraint.has_min_object_coverage(),
                   constraint.min_object_coverage(), constraint.has_max_object_coverage(),
                   constraint.max_object_coverage()));
  };
  return std::any_of(objects.begin(), objects.end(), object_fulfils);
}

Region draw_region(const Sampler& sampler, Rng& rng) {
  const float scale = rng.between(sampler.min_scale(), sampler.max_scale());
  // At most as wide and as high as the image.
  const float ratio =
      std::clamp(rng.between(sampler.min_aspect_ratio(), sampler.max_aspect_ratio()), scale * scale,
                 1 / (scale * scale));
  const float width = std::min(1.f, scale * std::sqrt(ratio)),
              height = std::min(1.f, scale / std::sqrt(ratio));
  const float left = rng.between(0, 1 - width), top = rng.between(0, 1 - height);
  return {left, top, left + width, top + height};
}

}  // namespace

float overlap(const Region& a, const Region& b) {
  const float common = common_area(a, b);
  return common > 0 ? common / (a.area() + b.area() - common) : 0;
}

float coverage(const Region& box, const Region& by) {
  const float common = common_area(box, by);
  return common > 0 ? common / box.area() : 0;
}

std::vector<Object> crop_objects(const std::vector<Object>& objects, const Region& crop,
                                 const EmitConstraint* constraint) {
  std::vector<Object> seen;
  for (const Object& object : objects) {
    if (constraint && !keeps(*constraint, crop, object.box)) continue;
    Object moved = object;
    const auto x = [&](float at) { return std::clamp((at - crop.xmin) / crop.width(), 0.f, 1.f); };
    const auto y = [&](float at) { return std::clamp((at - crop.ymin) / crop.height(), 0.f, 1.f); };
    moved.box = {x(object.box.xmin), y(object.box.ymin), x(object.box.xmax), y(object.box.ymax)};
    if (moved.box.area() > 0) seen.push_back(moved);
  }
  return seen;
}

std::vector<Region> sample_regions(const google::protobuf::RepeatedPtrField<BatchSampler>& samplers,
                                   const std::vector<Object>& objects, Rng& rng) {
  std::vector<Region> regions;
  for (const BatchSampler& sampler : samplers) {
    // As in SSD: a sampler that uses other samplers' boxes samples none.
    if (!sampler.use_original_image()) continue;
    uint32_t found = 0;
    for (uint32_t trial = 0; trial < sampler.max_trials(); ++trial) {
      if (sampler.has_max_sample() && found >= sampler.max_sample()) break;
      const Region box = draw_region(sampler.sampler(), rng);
      if (!fulfils(sampler.sample_constraint(), box, objects)) continue;
      ++found;
      regions.push_back(box);
    }
  }
  return regions;
}

void check_samplers(const google::protobuf::RepeatedPtrField<BatchSampler>& samplers) {
  for (const BatchSampler& batch : samplers) {
    const Sampler& sampler = batch.sampler();
    require(sampler.min_scale() > 0 && sampler.min_scale() <= sampler.max_scale() &&
                sampler.max_scale() <= 1,
            "a batch_sampler draws scales from ", sampler.min_scale(), " to ", sampler.max_scale(),
            "; they must be above 0 and at most 1, the smaller one first");
    require(
        sampler.min_aspect_ratio() > 0 && sampler.min_aspect_ratio() <= sampler.max_aspect_ratio(),
        "a batch_sampler draws aspect ratios from ", sampler.min_aspect_ratio(), " to ",
        sampler.max_aspect_ratio(), "; they must be above 0, the smaller one first");
  }
}

}  // namespace crema
