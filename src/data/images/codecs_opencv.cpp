#include <opencv2/imgcodecs.hpp>

#include "data/images/codecs.h"

namespace crema {

cv::Mat decode_file(std::string_view file, int flags, std::string& reason) {
  try {
    const cv::Mat bytes(1, static_cast<int>(file.size()), CV_8U, const_cast<char*>(file.data()));
    return cv::imdecode(bytes, flags);
  } catch (const cv::Exception& problem) {
    reason = problem.err;
  }
  return {};
}

bool encode_file(const cv::Mat& image, const std::string& kind, int quality, std::string& file,
                 std::string& reason) {
  std::vector<uint8_t> bytes;
  try {
    if (!cv::imencode("." + kind, image, bytes, {cv::IMWRITE_JPEG_QUALITY, quality})) return false;
    file.assign(bytes.begin(), bytes.end());
    return true;
  } catch (const cv::Exception& problem) {
    reason = problem.err;
  }
  return false;
}

}  // namespace crema
