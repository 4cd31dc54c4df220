// JpegDecoder: the seam to nvJPEG, which decodes batches of JPEGs into a GPU's memory. A GPU build
// without nvjpeg.h, and one without CUDA, compile nvjpeg_absent.cpp instead of gpu_nvjpeg.cpp; then
// there is no decoder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/staging.h"

namespace crema {

// Used by the thread that fills its stage.
class JpegDecoder {
 public:
  // Planes of height * width bytes, one after the other.
  enum class Planes { gray, bgr, rgb };
  struct Jpeg {
    std::string_view file;  // baseline: ImageHeader::baseline
    int64_t height, width;
    uint8_t* to;   // GPU memory for its planes
    size_t index;  // the caller's
  };

  virtual ~JpegDecoder() = default;
  // Queues the work on the stage's stream. Returns those that nvJPEG cannot decode. The files must
  // stay valid until BatchStage::finish().
  virtual std::vector<Jpeg> decode(const std::vector<Jpeg>& jpegs, Planes planes) = 0;
};

// `stage` must outlive it. Null if there is none; then `why` has the reason.
std::unique_ptr<JpegDecoder> open_jpeg_decoder(BatchStage& stage, std::string& why);

}  // namespace crema
