#include "device/jpeg_decoder.h"

namespace crema {

std::unique_ptr<JpegDecoder> open_jpeg_decoder(BatchStage&, std::string& why) {
  why = "this build has no nvJPEG (it was made without nvjpeg.h)";
  return nullptr;
}

}  // namespace crema
