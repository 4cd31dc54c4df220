// The video module: everything that videos need from OpenCV, as a separate library
// (data/images/image_module.h).
#include <opencv2/core/utils/logger.hpp>
#include <opencv2/videoio.hpp>

#include "base/error.h"
#include "data/images/image_matrix.h"
#include "data/images/image_module.h"

namespace crema {
namespace {

cv::VideoCapture open_video(const std::string& path) {
  // OpenCV would print what each of its readers cannot read.
  cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
  cv::VideoCapture video;
  std::string reason;
  // Names the file readers, because otherwise it would also look for cameras.
  for (const int reader :
       {cv::CAP_FFMPEG, cv::CAP_GSTREAMER, cv::CAP_OPENCV_MJPEG, cv::CAP_IMAGES}) {
    try {
      if (video.open(path, reader)) return video;
    } catch (const cv::Exception& problem) {
      reason = cat(": ", problem.err);
    }
  }
  fail(path, ": not a video that can be read", reason);
}

int64_t count_frames(const std::string& path) {
  return static_cast<int64_t>(open_video(path).get(cv::CAP_PROP_FRAME_COUNT));
}

std::vector<Image> read_frames(const std::string& path, int64_t first, int64_t count,
                               int64_t step) {
  cv::VideoCapture video = open_video(path);
  std::vector<Image> frames(static_cast<size_t>(count));
  const int64_t last = first + (count - 1) * step;
  // Some videos allow seeking only near a frame: these are read from the start.
  const bool jumped = first > 0 && video.set(cv::CAP_PROP_POS_FRAMES, static_cast<double>(first)) &&
                      static_cast<int64_t>(video.get(cv::CAP_PROP_POS_FRAMES)) == first;
  if (first > 0 && !jumped) video = open_video(path);
  cv::Mat frame;
  for (int64_t number = jumped ? first : 0; number <= last; ++number) {
    const bool there = video.grab();
    require(there, path, ": has ", number, " frames, but frame ", last, " is needed");
    if (number < first || (number - first) % step != 0) continue;
    require(video.retrieve(frame) && frame.depth() == CV_8U, path, ": frame ", number,
            " cannot be decoded");
    take(frame, frames[static_cast<size_t>((number - first) / step)]);
  }
  return frames;
}

constexpr VideoModule kModule = {read_frames, count_frames};

}  // namespace

extern "C" const VideoModule* crema_video_module() { return &kModule; }

}  // namespace crema
