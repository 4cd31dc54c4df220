// Changes: the random changes of transform_param { augment }, in training. Those that move pixels
// are one warp, those of rand_augment included, and come first; those of pixels in place follow.
#pragma once

#include "data/transforms/rand_augment.h"

namespace crema {

// The random numbers for one image.
struct Change {
  Warp warp;
  std::vector<RandChange> others;
};

class Changes {
 public:
  struct Surroundings {
    bool training = false;
    int64_t crop_height = 0, crop_width = 0;  // 0: none
    bool red_first = false;                   // of three channels
    std::vector<uint8_t> fill = {0};          // fill value: per channel, or one for all
  };

  Changes() = default;  // none
  // Error says which setting is invalid, in the test phase too.
  Changes(const AugmentParameter& parameter, Surroundings surroundings);

  // False: nothing is ever changed.
  bool any() const { return moves() || repaints(); }
  // Whether some change moves pixels, which labels with positions must follow.
  bool moves() const;
  // Whether the samples of a batch are mixed (transforms/mixture.h).
  bool mixes() const;
  // Null: images are not joined (transforms/mosaic.h).
  const AugmentMosaic* mosaic() const;

  // For an image of this size.
  Change draw(int64_t height, int64_t width, Rng& rng) const;
  // `rng` as draw() left it.
  void apply(const Change& change, Image& image, Rng& rng) const;
  void apply(Image& image, Rng& rng) const;
  // The name of the change that takes longest with images of this size; "": there is none.
  std::string dearest(int64_t channels, int64_t height, int64_t width) const;

 private:
  bool repaints() const;
  void crop(Warp& warp, Rng& rng) const;
  void move_corners(float least, float most, Warp& warp, Rng& rng) const;
  void change_colors(Image& image, Rng& rng) const;
  void cut_out(Image& image, Rng& rng) const;

  AugmentParameter parameter_;
  Surroundings around_;
};

}  // namespace crema
