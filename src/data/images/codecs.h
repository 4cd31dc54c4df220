// The image module's file formats, implemented in one of two ways: with OpenCV's codecs
// (codecs_opencv.cpp), or, in a portable build (-DCREMA_OPENCV_CODECS=OFF), with libpng and
// libjpeg-turbo (small_codecs_opencv.cpp), because OpenCV's bring 130 libraries. Both give the same
// pixels. For *_opencv.cpp files only.
#pragma once

#include <opencv2/core.hpp>
#include <string>
#include <string_view>

namespace crema {

// `flags` are cv::imread's. An empty matrix, or one with `reason`, is no image.
cv::Mat decode_file(std::string_view file, int flags, std::string& reason);

// kind: "png", "jpg" ... False, perhaps with `reason`: it cannot be written.
bool encode_file(const cv::Mat& image, const std::string& kind, int quality, std::string& file,
                 std::string& reason);

// The parts of the second way. A PNG; of 8 or 16 bits a channel.
cv::Mat decode_png(std::string_view file, int flags, std::string& reason);
bool encode_png(const cv::Mat& image, std::string& file, std::string& reason);
bool encode_jpeg(const cv::Mat& image, int quality, std::string& file, std::string& reason);

}  // namespace crema
