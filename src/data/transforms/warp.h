// Warps: one map of the plane, put together from several changes, through which an image is sampled
// once. Label images and boxes move through the same map.
#pragma once

#include "data/images/image.h"
#include "data/transforms/regions.h"

namespace crema {

struct PlanePoint {
  double x, y;
};

// A projective map, row by row. Coordinates are in pixels; pixel i reaches from i to i + 1.
struct PlaneMap {
  double v[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};

  PlanePoint operator()(const PlanePoint& from) const;
  // The map that makes `right` first.
  PlaneMap operator*(const PlaneMap& right) const;
  PlaneMap inverse() const;
};

struct Warp {
  int64_t height, width;  // of the result
  PlaneMap source = {};   // gives for a point of the result the one of the image that it shows
  int64_t rows = 1, columns = 1;  // pixels of the image that are averaged into one before sampling
  bool any = false;               // otherwise the result is the image

  // Adds a change after the current ones; angles are in degrees. A crop comes first: the part that
  // begins at a position, resized.
  void crop(double top, double left, double part_height, double part_width, int64_t to_height,
            int64_t to_width);
  void flip(bool left_to_right, bool top_to_bottom);
  void rotate(double angle);
  // Tangents of the angles, about the point (x, y).
  void shear(double along_x, double along_y, double x, double y);
  void translate(double right, double down);
  // Target positions of the corners: upper left, upper right, lower right, lower left.
  void move_corners(const PlanePoint (&to)[4]);

  // The largest of 1, 2, 4 and 8 by which the image may be shrunk first and be no smaller than the
  // result of the crop.
  int possible_shrink() const;
  // From now on for an image that has already been shrunk.
  void shrink(int by);

 private:
  void add(const PlaneMap& change);
};

// Bilinear samples, rounded. Points outside the image are `fill`: one value for all channels or one
// per channel.
Image warp_image(const Image& image, const Warp& warp, const std::vector<uint8_t>& fill);
// The nearest pixel.
Image warp_labels(const Image& labels, const Warp& warp, const std::vector<uint8_t>& fill);

// The boxes around the moved objects of an image of this size, clipped to the result. Objects that
// the constraint excludes are dropped; with none (null), those of which a tenth or less remains.
std::vector<Object> warp_objects(const std::vector<Object>& objects, const Warp& warp,
                                 int64_t height, int64_t width, const EmitConstraint* constraint);

}  // namespace crema
