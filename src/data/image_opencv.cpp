// The image module: everything that needs OpenCV, as a library of its own (data/image_module.h).
#include <opencv2/core/utils/logger.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <opencv2/videoio.hpp>

#include "base/error.h"
#include "data/image_module.h"

namespace crema {
namespace {

void take(const cv::Mat& matrix, Image& image) {
  image.channels = matrix.channels();
  image.height = matrix.rows;
  image.width = matrix.cols;
  const size_t row = static_cast<size_t>(image.width * image.channels);
  image.pixels.resize(row * image.height);
  for (int64_t y = 0; y < image.height; ++y) {
    const uint8_t* from = matrix.ptr<uint8_t>(static_cast<int>(y));
    std::copy(from, from + row, image.pixels.begin() + static_cast<int64_t>(row) * y);
  }
}

cv::Mat view(const Image& image) {
  return cv::Mat(static_cast<int>(image.height), static_cast<int>(image.width),
                 CV_8UC(static_cast<int>(image.channels)),
                 const_cast<uint8_t*>(image.pixels.data()));
}

void decode(std::string_view file, Color color, Image& image) {
  require(!file.empty(), "an empty file is not an image");
  const int flags = color == Color::color  ? cv::IMREAD_COLOR
                    : color == Color::gray ? cv::IMREAD_GRAYSCALE
                                           : cv::IMREAD_UNCHANGED;
  cv::Mat decoded;
  std::string reason;
  try {
    const cv::Mat bytes(1, static_cast<int>(file.size()), CV_8U, const_cast<char*>(file.data()));
    decoded = cv::imdecode(bytes, flags);
  } catch (const cv::Exception& problem) {
    reason = cat(": ", problem.err);
  }
  require(decoded.data != nullptr, "its ", file.size(),
          " bytes are not an image that can be decoded", reason);
  require(decoded.depth() == CV_8U,
          "the image has more than 8 bits a channel; force_color, force_gray or a conversion "
          "of the file brings it to 8");
  take(decoded, image);
}

int flag_of(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::nearest:
      return cv::INTER_NEAREST;
    case Interpolation::linear:
      return cv::INTER_LINEAR;
    case Interpolation::area:
      return cv::INTER_AREA;
    case Interpolation::cubic:
      return cv::INTER_CUBIC;
    case Interpolation::lanczos:
      return cv::INTER_LANCZOS4;
  }
  return cv::INTER_LINEAR;
}

void resize(int64_t height, int64_t width, Image& image, Interpolation interpolation) {
  if (height == image.height && width == image.width) return;
  cv::Mat resized;
  cv::resize(view(image), resized, cv::Size(static_cast<int>(width), static_cast<int>(height)), 0,
             0, flag_of(interpolation));
  take(resized, image);
}

void change_color(ColorChange change, Image& image) {
  cv::Mat matrix = view(image);
  cv::cvtColor(matrix, matrix,
               change == ColorChange::bgr_to_hsv   ? cv::COLOR_BGR2HSV
               : change == ColorChange::bgr_to_lab ? cv::COLOR_BGR2Lab
                                                   : cv::COLOR_HSV2BGR);
}

// Changes the brightness and leaves the colours.
template <typename Change>
void change_brightness(Image& image, const Change& change) {
  cv::Mat matrix = view(image), brightness;
  if (image.channels != 3) {
    change(matrix, brightness);
    return take(brightness, image);
  }
  std::vector<cv::Mat> planes;
  cv::cvtColor(matrix, matrix, cv::COLOR_BGR2YCrCb);
  cv::split(matrix, planes);
  change(planes[0], brightness);
  planes[0] = brightness;
  cv::merge(planes, matrix);
  cv::cvtColor(matrix, matrix, cv::COLOR_YCrCb2BGR);
  take(matrix, image);
}

void filter(ImageFilter filter, Image& image) {
  cv::Mat matrix = view(image), filtered;
  switch (filter) {
    case ImageFilter::blur:
      cv::GaussianBlur(matrix, filtered, cv::Size(7, 7), 1.5);
      return take(filtered, image);
    case ImageFilter::erode:
      cv::erode(matrix, filtered, cv::getStructuringElement(cv::MORPH_ELLIPSE, cv::Size(3, 3)));
      return take(filtered, image);
    case ImageFilter::equalize:
      return change_brightness(
          image, [](const cv::Mat& from, cv::Mat& to) { cv::equalizeHist(from, to); });
    case ImageFilter::equalize_regions:
      return change_brightness(
          image, [](const cv::Mat& from, cv::Mat& to) { cv::createCLAHE(4)->apply(from, to); });
  }
}

cv::VideoCapture open_film(const std::string& path) {
  // It would print what each of its readers cannot read.
  cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
  cv::VideoCapture film;
  std::string reason;
  try {
    film.open(path);
  } catch (const cv::Exception& problem) {
    reason = cat(": ", problem.err);
  }
  require(film.isOpened(), path, ": not a film that can be read", reason);
  return film;
}

int64_t count_frames(const std::string& path) {
  return static_cast<int64_t>(open_film(path).get(cv::CAP_PROP_FRAME_COUNT));
}

std::vector<Image> read_frames(const std::string& path, int64_t first, int64_t count,
                               int64_t step) {
  cv::VideoCapture film = open_film(path);
  std::vector<Image> frames(static_cast<size_t>(count));
  const int64_t last = first + (count - 1) * step;
  // Some films let one jump only near a frame: these are read from the start.
  const bool jumped = first > 0 && film.set(cv::CAP_PROP_POS_FRAMES, static_cast<double>(first)) &&
                      static_cast<int64_t>(film.get(cv::CAP_PROP_POS_FRAMES)) == first;
  if (first > 0 && !jumped) film = open_film(path);
  cv::Mat frame;
  for (int64_t number = jumped ? first : 0; number <= last; ++number) {
    const bool there = film.grab();
    require(there, path, ": has ", number, " frames, but frame ", last, " is needed");
    if (number < first || (number - first) % step != 0) continue;
    require(film.retrieve(frame) && frame.depth() == CV_8U, path, ": frame ", number,
            " cannot be decoded");
    take(frame, frames[static_cast<size_t>((number - first) / step)]);
  }
  return frames;
}

std::string encode(const Image& image, const std::string& kind, int quality) {
  std::vector<uint8_t> file;
  std::string reason;
  try {
    const std::vector<int> settings = {cv::IMWRITE_JPEG_QUALITY, quality};
    if (cv::imencode("." + kind, view(image), file, settings)) return {file.begin(), file.end()};
  } catch (const cv::Exception& problem) {
    reason = cat(": ", problem.err);
  }
  fail("cannot write an image of kind \"", kind, "\"", reason);
}

constexpr ImageModule kModule = {decode, resize,      change_color, filter,
                                 encode, read_frames, count_frames};

}  // namespace

extern "C" const ImageModule* crema_image_module() { return &kModule; }

}  // namespace crema
