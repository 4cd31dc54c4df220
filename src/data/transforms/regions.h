// Regions of an image, the objects in them, and how SSD crops an image with its objects.
#pragma once

#include <vector>

#include "data/transforms/rng.h"
#include "proto/data.pb.h"

namespace crema {

// In fractions of the image's width and height.
struct Region {
  float xmin = 0, ymin = 0, xmax = 1, ymax = 1;

  float width() const { return xmax - xmin; }
  float height() const { return ymax - ymin; }
  float area() const { return width() < 0 || height() < 0 ? 0 : width() * height(); }
};

struct Object {
  Region box;        // around it
  int label = 0;     // its class
  int instance = 0;  // its index among those of the class
  bool difficult = false;
};

// Intersection over union.
float overlap(const Region& a, const Region& b);
// The fraction of `region` that `by` covers.
float coverage(const Region& region, const Region& by);

// The objects as seen in the part `crop` of the image, which may also extend beyond it: clipped to
// it, in fractions of it. Objects excluded by the constraint (null: none) or the crop are removed.
std::vector<Object> crop_objects(const std::vector<Object>& objects, const Region& crop,
                                 const EmitConstraint* constraint);

// The regions that batch samplers find for an image with these objects.
std::vector<Region> sample_regions(const google::protobuf::RepeatedPtrField<BatchSampler>& samplers,
                                   const std::vector<Object>& objects, Rng& rng);

// Error says which setting of a sampler is invalid.
void check_samplers(const google::protobuf::RepeatedPtrField<BatchSampler>& samplers);

}  // namespace crema
