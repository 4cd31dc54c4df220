// The image module: everything that images need from OpenCV, as a separate library
// (data/images/image_module.h).
#include <new>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "base/error.h"
#include "data/images/codecs.h"
#include "data/images/image_matrix.h"
#include "data/images/image_module.h"

namespace crema {
namespace {

template <typename T>
cv::Mat view(const Pixels<T>& image) {
  return cv::Mat(static_cast<int>(image.height), static_cast<int>(image.width),
                 CV_MAKETYPE(cv::DataType<T>::depth, static_cast<int>(image.channels)),
                 const_cast<T*>(image.pixels.data()));
}

cv::Mat decoded(std::string_view file, int flags) {
  require(!file.empty(), "an empty file is not an image");
  std::string reason;
  cv::Mat matrix = decode_file(file, flags, reason);
  require(matrix.data != nullptr, "its ", file.size(),
          " bytes are not an image that can be decoded", reason.empty() ? "" : ": ", reason);
  return matrix;
}

void decode(std::string_view file, Color color, int orientation, Image& image) {
  int flags = color == Color::color  ? cv::IMREAD_COLOR
              : color == Color::gray ? cv::IMREAD_GRAYSCALE
                                     : cv::IMREAD_UNCHANGED;
  if (orientation == 0 && color != Color::as_stored) flags |= cv::IMREAD_IGNORE_ORIENTATION;
  const cv::Mat matrix = decoded(file, flags);
  require(matrix.depth() == CV_8U,
          "the image has more than 8 bits a channel; force_color, force_gray or a conversion "
          "of the file brings it to 8");
  take(matrix, image);
}

bool decode_deep(std::string_view file, Image& image, DeepImage& deep) {
  cv::Mat matrix = decoded(file, cv::IMREAD_UNCHANGED);
  if (matrix.depth() == CV_8U) {
    take(matrix, image);
    return false;
  }
  matrix.convertTo(matrix, CV_32F);
  take(matrix, deep);
  return true;
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

// Memory may be short for it.
template <typename T>
void resize_to(cv::Size size, double factor, int flag, Pixels<T>& image) {
  cv::Mat resized;
  std::string reason;
  try {
    cv::resize(view(image), resized, size, factor, factor, flag);
  } catch (const cv::Exception& problem) {
    if (problem.code == cv::Error::StsNoMem) throw std::bad_alloc();  // the file is not damaged
    reason = problem.err;
  }
  if (!reason.empty()) {
    fail("the image of ", image.width, " x ", image.height, " pixels cannot be resized: ", reason);
  }
  take(resized, image);
}

void resize(int64_t height, int64_t width, Image& image, Interpolation interpolation) {
  if (height == image.height && width == image.width) return;
  resize_to(cv::Size(static_cast<int>(width), static_cast<int>(height)), 0, flag_of(interpolation),
            image);
}

void resize_deep(int64_t height, int64_t width, DeepImage& image) {
  if (height == image.height && width == image.width) return;
  resize_to(cv::Size(static_cast<int>(width), static_cast<int>(height)), 0, cv::INTER_LINEAR,
            image);
}

// The library's own factors decide which pixels are read: an equal output size alone does not give
// an equal image.
void scale(double factor, Image& image) {
  const auto side = [&](int64_t pixels) {
    return std::max<int64_t>(1, cvRound(static_cast<double>(pixels) * factor));
  };
  const int64_t height = side(image.height), width = side(image.width);
  if (std::min(height, width) == 1) return resize(height, width, image, Interpolation::linear);
  resize_to(cv::Size(), factor, cv::INTER_LINEAR, image);
}

void change_color(ColorChange change, Image& image) {
  cv::Mat matrix = view(image);
  cv::cvtColor(matrix, matrix,
               change == ColorChange::bgr_to_hsv   ? cv::COLOR_BGR2HSV
               : change == ColorChange::bgr_to_lab ? cv::COLOR_BGR2Lab
                                                   : cv::COLOR_HSV2BGR);
}

// Changes the brightness and keeps the colours.
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

std::string encode(const Image& image, const std::string& kind, int quality) {
  std::string file, reason;
  if (encode_file(view(image), kind, quality, file, reason)) return file;
  fail("cannot write an image of kind \"", kind, "\"", reason.empty() ? "" : ": ", reason);
}

constexpr ImageModule kModule = {decode, decode_deep,  resize, resize_deep,
                                 scale,  change_color, filter, encode};

}  // namespace

extern "C" const ImageModule* crema_image_module() {
  // Callers with many images process them on their own threads.
  cv::setNumThreads(1);
  return &kModule;
}

}  // namespace crema
