#include "data/transforms/change_ranges.h"

#include "base/error.h"

namespace crema {
namespace {

// NaN is in no range.
bool in_range(float value, float lower, float upper) { return value >= lower && value <= upper; }

void check_number(const char* field, float value, float lower, float upper, const char* meaning) {
  require(in_range(value, lower, upper), "augment has ", field, ": ", value, "; ", meaning,
          " is from ", lower, " to ", upper);
}

void check_share(const char* field, float value) {
  check_number(field, value, 0, 1, "a share of the samples");
}

void check_alpha(const char* field, float value) {
  check_number(field, value, 0.01f, 100, "the alpha of a Beta(alpha, alpha) distribution");
}

void check_range(const AugmentRange& range, const ChangeRange& meaning) {
  check_share(cat(meaning.name, " { probability }").c_str(), range.probability());
  const float least = meaning.least_of(range), most = meaning.most_of(range);
  require(in_range(least, meaning.lower, meaning.upper) &&
              in_range(most, meaning.lower, meaning.upper) && least <= most,
          "augment has ", meaning.name, " { least: ", least,
          range.has_least() ? "" : " (the default)", " most: ", most,
          range.has_most() ? "" : " (the default)", " }; these are ", meaning.unit, " from ",
          meaning.lower, " to ", meaning.upper, ", the smaller one as least");
}

void check_crop(const AugmentResizedCrop& crop) {
  check_share("resized_crop { probability }", crop.probability());
  require(crop.least_area() > 0 && crop.least_area() <= crop.most_area() && crop.most_area() <= 1,
          "augment has resized_crop { least_area: ", crop.least_area(),
          " most_area: ", crop.most_area(),
          " }; these are shares of the image's area, above 0 and at most 1, the smaller one as "
          "least_area");
  constexpr float kMost = 100;
  require(crop.least_aspect() >= 1 / kMost && crop.least_aspect() <= crop.most_aspect() &&
              crop.most_aspect() <= kMost,
          "augment has resized_crop { least_aspect: ", crop.least_aspect(),
          " most_aspect: ", crop.most_aspect(), " }; these are widths in heights from ", 1 / kMost,
          " to ", kMost, ", the smaller one as least_aspect");
}

void check_color(const AugmentColor& color) {
  constexpr float kMost = 10;
  check_share("color { probability }", color.probability());
  check_number("color { brightness }", color.brightness(), 0, kMost, "the largest change");
  check_number("color { contrast }", color.contrast(), 0, kMost, "the largest change");
  check_number("color { saturation }", color.saturation(), 0, kMost, "the largest change");
  check_number("color { hue }", color.hue(), 0, 0.5f, "the largest turn, in circles,");
}

}  // namespace

void check_changes(const AugmentParameter& p) {
  if (p.has_resized_crop()) check_crop(p.resized_crop());
  check_share("flip { horizontal }", p.flip().horizontal());
  check_share("flip { vertical }", p.flip().vertical());
  check_range(p.rotate(), kRotation);
  check_range(p.shear(), kShear);
  check_range(p.perspective(), kPerspective);
  check_number("rand_augment { number }", static_cast<float>(p.rand_augment().number()), 1, 100,
               "the number of changes");
  check_number("rand_augment { magnitude }", p.rand_augment().magnitude(), 0, 10, "the strength");
  check_color(p.color());
  check_share("gray { probability }", p.gray().probability());
  check_range(p.blur(), kBlur);
  check_range(p.jpeg(), kJpeg);
  check_range(p.noise(), kNoise);
  check_share("cutout { probability }", p.cutout().probability());
  check_number("cutout { holes }", static_cast<float>(p.cutout().holes()), 1, 1000,
               "the number of squares");
  check_number("cutout { size }", p.cutout().size(), 0, 1, "a share of the smaller side");
  check_share("mixup { probability }", p.mixup().probability());
  check_alpha("mixup { alpha }", p.mixup().alpha());
  check_share("cutmix { probability }", p.cutmix().probability());
  check_alpha("cutmix { alpha }", p.cutmix().alpha());
  check_share("mosaic { probability }", p.mosaic().probability());
  check_number("mosaic { least_center }", p.mosaic().least_center(), 0, 0.5f,
               "the distance of the point from the borders, as a share of the sides,");
  check_number("mosaic { least_visible }", p.mosaic().least_visible(), 0, 1,
               "the share of an object that must be seen");
}

}  // namespace crema
