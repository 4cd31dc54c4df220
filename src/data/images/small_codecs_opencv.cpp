// Without OpenCV's codecs: PNGs, binary PPMs and PGMs, and JPEGs are written; libcrema_jpeg reads
// those.
#include <algorithm>
#include <charconv>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "data/images/codecs.h"

namespace crema {
namespace {

constexpr const char* kKinds =
    "this build of Crema reads JPEG, PNG, and binary PPM and PGM of 8 bits; convert the file, or "
    "build on this machine, with OpenCV";

// The next number of a header, after white space and comments; -1: there is none.
int next_number(std::string_view& rest) {
  while (!rest.empty() && (rest[0] <= ' ' || rest[0] == '#')) {
    rest.remove_prefix(rest[0] == '#' ? std::min(rest.find('\n'), rest.size()) : 1);
  }
  int number = -1;
  const auto end = std::from_chars(rest.data(), rest.data() + rest.size(), number).ptr;
  rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  return number;
}

// In integers, as in OpenCV's own reader.
cv::Mat grey(const cv::Mat& image) {
  constexpr int kRed = 4899, kGreen = 9617, kBlue = 1868;  // of 16384
  cv::Mat result(image.size(), CV_8U);
  std::transform(image.begin<cv::Vec3b>(), image.end<cv::Vec3b>(), result.begin<uint8_t>(),
                 [](const cv::Vec3b& rgb) {
                   return static_cast<uint8_t>(
                       (kRed * rgb[0] + kGreen * rgb[1] + kBlue * rgb[2] + 8192) >> 14);
                 });
  return result;
}

// "P6 WIDTH HEIGHT 255\n" and the pixels, red first; P5: grey ones.
cv::Mat decode_ppm(std::string_view file, int flags, std::string& reason) {
  const int channels = file[1] == '6' ? 3 : 1;
  std::string_view rest = file.substr(2);
  const int width = next_number(rest), height = next_number(rest), largest = next_number(rest);
  if (width <= 0 || height <= 0 || largest != 255) {
    reason = kKinds;
    return {};
  }
  const size_t bytes = static_cast<size_t>(width) * static_cast<size_t>(height) * channels;
  if (rest.size() < bytes + 1) {
    reason = "the file is cut short";
    return {};
  }
  cv::Mat image(height, width, CV_8UC(channels), const_cast<char*>(rest.data() + 1));
  cv::Mat result;
  const bool gray = flags != cv::IMREAD_UNCHANGED && (flags & cv::IMREAD_COLOR) == 0;
  if (channels == 3 && gray) {
    result = grey(image);
  } else if (channels == 3) {
    cv::cvtColor(image, result, cv::COLOR_RGB2BGR);
  } else if (gray || flags == cv::IMREAD_UNCHANGED) {
    result = image.clone();
  } else {
    cv::cvtColor(image, result, cv::COLOR_GRAY2BGR);
  }
  return result;
}

}  // namespace

cv::Mat decode_file(std::string_view file, int flags, std::string& reason) {
  if (file.starts_with("\x89PNG\r\n\x1a\n")) return decode_png(file, flags, reason);
  if (file.starts_with("P5") || file.starts_with("P6")) return decode_ppm(file, flags, reason);
  reason = file.starts_with("\xFF\xD8\xFF")
               ? "libjpeg cannot decode the JPEG: it is damaged, or has other than 1 or 3 channels"
               : kKinds;
  return {};
}

bool encode_file(const cv::Mat& image, const std::string& kind, int quality, std::string& file,
                 std::string& reason) {
  std::string lower = kind;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  if (lower == "png") return encode_png(image, file, reason);
  if (lower == "jpg" || lower == "jpeg") return encode_jpeg(image, quality, file, reason);
  reason = "this build of Crema writes jpg and png";
  return false;
}

}  // namespace crema
