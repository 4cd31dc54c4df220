// VideoClips: clips that a list names, from videos or from image files, one per frame.
#pragma once

#include "data/lists/image_files.h"

namespace crema {

struct ClipOptions {
  int64_t length = 1;    // frames of a clip, or of each segment
  int64_t segments = 1;  // equal parts of a clip, from each of which frames are taken
  int64_t step = 1;      // from frame to frame
  bool videos = false;   // otherwise folders of image files
  bool flow = false;     // two grey files per frame
  bool whole = false;    // lines give the number of frames, not the first one to take
  bool drawn = false;    // with `whole`: takes frames at random, not from the middle
  bool stacked = false;  // all frames' channels form one axis; else frames are an axis after the
                         // channels
  std::string pattern;   // of file names
};

// The file name of a frame: %d or %04d is replaced by its number, %c by `direction`, 'x' or 'y'.
// Error for any other pattern.
std::string frame_name(const std::string& pattern, int64_t number, char direction);

class VideoClips : public Dataset {
 public:
  // Lines `path number label`; for whole videos `path label`.
  VideoClips(const std::string& list, ImageReading reading, const Transform& transform,
             ClipOptions options);

  int64_t size() const override { return static_cast<int64_t>(clips_.size()); }
  std::string describe(const SampleIndex& sample_index) const override;
  std::string how_to_equalize() const override;
  void load(const SampleIndex& sample_index, Sample& sample) const override;
  void write(const SampleIndex& sample_index, Sample& sample, float* data) const override;

 private:
  std::vector<int64_t> frames_of(const ListedImage& clip, Rng& rng) const;
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

// VideoFrames: the frames of one video, each a sample.
class VideoFrames : public Dataset {
 public:
  // skip: frames left out between two samples.
  VideoFrames(std::string path, Transform transform, int64_t skip);

  int64_t size() const override { return count_; }
  std::string describe(const SampleIndex& sample_index) const override;
  std::string how_to_equalize() const override;
  void load(const SampleIndex& sample_index, Sample& sample) const override;
  void write(const SampleIndex& sample_index, Sample& sample, float* data) const override;

 private:
  std::string path_;
  Transform transform_;
  int64_t step_, count_;
};

}  // namespace crema
