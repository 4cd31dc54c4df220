#include "data/lists/video_clips.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace crema {

std::string frame_name(const std::string& pattern, int64_t number, char direction) {
  std::string name;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      name += pattern[i];
      continue;
    }
    size_t end = i + 1, width = 0;
    while (end < pattern.size() && pattern[end] >= '0' && pattern[end] <= '9' && width < 100)
      width = width * 10 + static_cast<size_t>(pattern[end++] - '0');
    const char kind = end < pattern.size() ? pattern[end] : ' ';
    if (kind == 'c') {
      name += direction;
    } else if (kind == 'd') {
      const std::string digits = std::to_string(number);
      name += std::string(digits.size() < width ? width - digits.size() : 0, '0') + digits;
    } else {
      fail("name_pattern \"", pattern, "\" has a % that is neither %d, %04d nor %c");
    }
    i = end;
  }
  return name;
}

VideoClips::VideoClips(const std::string& list, ImageReading reading, const Transform& transform,
                       ClipOptions options)
    : list_(list),
      clips_(read_labelled_list(list)),
      reading_(std::move(reading)),
      transforms_(transform.of_frames()),
      options_(std::move(options)) {
  transform.check_order_of_decoded();
  const auto frames = static_cast<size_t>(options_.length * options_.segments);
  require(transforms_.size() == 1 || transforms_.size() == frames, "the mean is that of clips of ",
          transforms_.size(), " frames, but these have ", frames);
  const size_t numbers = options_.videos && options_.whole && options_.segments == 1 ? 1 : 2;
  require(clips_[0].labels.size() == numbers, list_, ":", clips_[0].line, ": a line is `path ",
          numbers == 1     ? ""
          : options_.whole ? "frames "
                           : "first-frame ",
          "label`, but has ", clips_[0].labels.size(), " numbers");
  for (const ListedImage& clip : clips_) {
    const float frame = clip.labels[0];
    if (numbers == 2 && !(frame >= 0 && frame == std::trunc(frame) && frame <= 1 << 24))
      fail(list_, ":", clip.line, ": the number of a frame, or of frames, cannot be ", frame);
  }
  require(!options_.flow || !transform.changes().any(),
          "transform_param has augment, but the clips are optical flow: what a change of one would "
          "be is not known");
  frame_name(options_.pattern, 1, 'x');
}

std::string VideoClips::describe(const SampleIndex& sample_index) const {
  return cat(list_, ":", clips_[sample_index.record_index.index].line);
}

std::string VideoClips::how_to_equalize() const {
  return "give new_height and new_width, give transform_param a crop_size, or set batch_size: 1";
}

// The numbers of a clip's frames: files count from 1, the frames of a video from 0.
std::vector<int64_t> VideoClips::frames_of(const ListedImage& clip, Rng& rng) const {
  const int64_t base = options_.videos ? 0 : 1, reach = (options_.length - 1) * options_.step + 1;
  std::vector<int64_t> numbers;
  const auto take = [&](int64_t first) {
    for (int64_t i = 0; i < options_.length; ++i) numbers.push_back(first + i * options_.step);
  };
  if (!options_.whole) {
    take(static_cast<int64_t>(clip.labels[0]));
    return numbers;
  }
  const int64_t frames = clip.labels.size() > 1 ? static_cast<int64_t>(clip.labels[0])
                                                : count_frames(reading_.find(clip.path));
  require(frames >= reach, "the clip has ", frames, " frames, but ", reach, " are needed");
  const int64_t part = frames / options_.segments;
  for (int64_t segment = 0; segment < options_.segments; ++segment) {
    // Segments that are too short share frames with their neighbours.
    const int64_t spare = std::max<int64_t>(0, part - reach);
    const int64_t within = options_.drawn ? rng.pick(spare + 1) : (spare + 1) / 2;
    take(base + std::min(segment * part + within, frames - reach));
  }
  return numbers;
}

void VideoClips::read(const ListedImage& clip, const std::vector<int64_t>& numbers,
                      std::vector<Image>& frames) const {
  if (options_.videos) {
    const std::string path = reading_.find(clip.path);
    for (size_t first = 0; first < numbers.size(); first += options_.length) {
      for (Image& frame : read_frames(path, numbers[first], options_.length, options_.step)) {
        reading_.resize(Interpolation::linear, frame);
        frames.push_back(std::move(frame));
      }
    }
    return;
  }
  for (const int64_t number : numbers) {
    const auto file = [&](char direction) {
      return cat(clip.path, "/", frame_name(options_.pattern, number, direction));
    };
    Image frame;
    if (options_.flow) {
      Image x, y;
      reading_.read(file('x'), Color::gray, Interpolation::linear, x);
      reading_.read(file('y'), Color::gray, Interpolation::linear, y);
      require(x.height == y.height && x.width == y.width, file('x'), " is ", x.height, "x", x.width,
              ", but ", file('y'), " is ", y.height, "x", y.width);
      frame = {2, x.height, x.width, std::vector<uint8_t>(2 * x.pixels.size())};
      for (size_t i = 0; i < x.pixels.size(); ++i) {
        frame.pixels[2 * i] = x.pixels[i];
        frame.pixels[2 * i + 1] = y.pixels[i];
      }
    } else {
      reading_.read(file(' '), reading_.color, Interpolation::linear, frame);
    }
    frames.push_back(std::move(frame));
  }
}

void VideoClips::load(const SampleIndex& sample_index, Sample& sample) const {
  Rng rng = rng_of(sample_index);
  const ListedImage& clip = clips_[sample_index.record_index.index];
  std::vector<Image> frames;
  read(clip, frames_of(clip, rng), frames);
  // All frames stacked vertically, so that they change alike.
  Image& all = sample.record.image;
  all.pixels.clear();
  for (Image& frame : frames) {
    Rng same = rng;
    transform(0).augmentation().apply(frame, same);
    transform(0).changes().apply(frame, same);
    const Image& first = frames.front();
    require(frame.height == first.height && frame.width == first.width, "a frame is ", frame.height,
            "x", frame.width, ", but the first one ", first.height, "x", first.width);
    all.pixels.insert(all.pixels.end(), frame.pixels.begin(), frame.pixels.end());
  }
  all.channels = frames[0].channels;
  all.height = frames[0].height;
  all.width = frames[0].width;
  show_image(sample.record);
  const Shape out = transform(0).output(sample.record.shape());
  const auto count = static_cast<int64_t>(frames.size());
  sample.shape = options_.stacked ? Shape{count * out[0], out[1], out[2]}
                                  : Shape{out[0], count, out[1], out[2]};
  sample.label_shape = Shape();
}

void VideoClips::write(const SampleIndex& sample_index, Sample& sample, float* data) const {
  const Shape& shape = sample.shape;
  const int64_t axes = shape.axes(), channels = transform(0).channels(sample.record.channels);
  const int64_t plane = shape[axes - 2] * shape[axes - 1],
                count = shape.count() / (plane * channels);
  Record frame;
  frame.channels = sample.record.channels;
  frame.height = sample.record.height;
  frame.width = sample.record.width;
  std::vector<float> values(options_.stacked ? 0 : channels * plane);
  for (int64_t i = 0; i < count; ++i) {
    show_pixels(sample.record.image.pixels.data() + i * frame.shape().count(), frame);
    float* const to = options_.stacked ? data + i * channels * plane : values.data();
    transform(i).apply(frame, sample_index.draw(), to);
    for (int64_t c = 0; c < channels && !options_.stacked; ++c)
      std::copy_n(values.data() + c * plane, plane, data + (c * count + i) * plane);
  }
  sample.labels.assign(1, clips_[sample_index.record_index.index].labels.back());
}

VideoFrames::VideoFrames(std::string path, Transform transform, int64_t skip)
    : path_(std::move(path)), transform_(std::move(transform)), step_(skip + 1) {
  transform_.check_order_of_decoded();
  count_ = (count_frames(path_) + step_ - 1) / step_;
  require(count_ > 0, path_, ": the video has no frames");
}

std::string VideoFrames::describe(const SampleIndex& sample_index) const {
  return cat(path_, ", frame ", sample_index.record_index.index * step_);
}

std::string VideoFrames::how_to_equalize() const { return "give transform_param a resize_param"; }

void VideoFrames::load(const SampleIndex& sample_index, Sample& sample) const {
  sample.record.image = read_frames(path_, sample_index.record_index.index * step_, 1, 1)[0];
  show_image(sample.record);
  transform_.augment(sample.record, rng_of(sample_index));
  sample.shape = transform_.output(sample.record.shape());
  sample.label_shape = Shape();
}

void VideoFrames::write(const SampleIndex& sample_index, Sample& sample, float* data) const {
  transform_.apply(sample.record, sample_index.draw(), data);
  sample.labels.assign(1, 0);
}

}  // namespace crema
