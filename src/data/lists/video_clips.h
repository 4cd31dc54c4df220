// VideoClips: clips that a list names, of films or of image files, one a frame.
#pragma once

#include "data/lists/image_files.h"

namespace crema {

struct ClipOptions {
  int64_t length = 1;    // frames of a clip, or of each segment
  int64_t segments = 1;  // equal parts of a clip, from each of which frames are taken
  int64_t step = 1;      // from frame to frame
  bool films = false;    // else folders of image files
  bool flow = false;     // two grey files a frame
  bool whole = false;    // lines give the frames that there are, not the first one to take
  bool drawn = false;    // `whole`: which of them is drawn at random, else they lie in the middle
  bool stacked = false;  // all frames' channels are one axis; else frames are an axis behind them
  std::string pattern;   // of file names
};

// The file name of a frame: %d or %04d stands for its number, %c for `direction`, 'x' or 'y'. Error
// for a pattern with anything else.
std::string frame_name(const std::string& pattern, int64_t number, char direction);

class VideoClips : public Samples {
 public:
  // Lines `path number label`; of whole films `path label`.
  VideoClips(const std::string& list, ImageReading reading, const Transform& transform,
             ClipOptions options);

  int64_t size() const override { return static_cast<int64_t>(clips_.size()); }
  std::string describe(const Turn& turn) const override;
  std::string how_to_equalize() const override;
  void load(const Turn& turn, Sample& sample) const override;
  void write(const Turn& turn, Sample& sample, float* data) const override;

 private:
  std::vector<int64_t> frames_of(const ListedImage& clip, Draws& draws) const;
  void read(const ListedImage& clip, const std::vector<int64_t>& numbers,
            std::vector<Image>& frames) const;

  std::string list_;
  std::vector<ListedImage> clips_;
  const Transform& transform(int64_t frame) const {
    return transforms_[transforms_.size() > 1 ? frame : 0];
  }

  ImageReading reading_;
  std::vector<Transform> transforms_;  // one for all frames, or one for each
  ClipOptions options_;
};

// FilmFrames: the frames of one film, each a sample.
class FilmFrames : public Samples {
 public:
  // skip: frames left out between two.
  FilmFrames(std::string path, Transform transform, int64_t skip);

  int64_t size() const override { return count_; }
  std::string describe(const Turn& turn) const override;
  std::string how_to_equalize() const override;
  void load(const Turn& turn, Sample& sample) const override;
  void write(const Turn& turn, Sample& sample, float* data) const override;

 private:
  std::string path_;
  Transform transform_;
  int64_t step_, count_;
};

}  // namespace crema
