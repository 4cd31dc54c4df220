// Converts OpenCV's matrices to images. For *_opencv.cpp files only.
#pragma once

#include <algorithm>
#include <opencv2/core.hpp>

#include "data/images/image.h"

namespace crema {

template <typename T>
void take(const cv::Mat& matrix, Pixels<T>& image) {
  image.channels = matrix.channels();
  image.height = matrix.rows;
  image.width = matrix.cols;
  const size_t row = static_cast<size_t>(image.width * image.channels);
  image.pixels.resize(row * image.height);
  for (int64_t y = 0; y < image.height; ++y) {
    const T* from = matrix.ptr<T>(static_cast<int>(y));
    std::copy(from, from + row, image.pixels.begin() + static_cast<int64_t>(row) * y);
  }
}

}  // namespace crema
