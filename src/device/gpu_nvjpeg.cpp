#include <nvjpeg.h>

#include <mutex>

#include "device/gpu.h"
#include "device/gpu_libraries.h"
#include "device/jpeg_decoder.h"

#define CREMA_NVJPEG(F)            \
  F(nvjpegCreateEx)                \
  F(nvjpegDecodeBatched)           \
  F(nvjpegDecodeBatchedInitialize) \
  F(nvjpegDecodeBatchedSupported)  \
  F(nvjpegDestroy)                 \
  F(nvjpegJpegStateCreate)         \
  F(nvjpegJpegStateDestroy)        \
  F(nvjpegJpegStreamCreate)        \
  F(nvjpegJpegStreamDestroy)       \
  F(nvjpegJpegStreamParseHeader)
CREMA_NVJPEG(CREMA_JUMP)

namespace crema {
namespace {

constexpr GpuFunction kNvjpeg[] = {CREMA_NVJPEG(CREMA_FUNCTION)};

void load_nvjpeg() {
  static std::once_flag once;
  std::call_once(once, [] {
    load_gpu_library("libnvjpeg.so", NVJPEG_VER_MAJOR, kNvjpeg, "decoding JPEGs on a GPU");
  });
}

nvjpegOutputFormat_t format_of(JpegDecoder::Planes planes) {
  switch (planes) {
    case JpegDecoder::Planes::gray:
      return NVJPEG_OUTPUT_Y;
    case JpegDecoder::Planes::bgr:
      return NVJPEG_OUTPUT_BGR;
    case JpegDecoder::Planes::rgb:
      return NVJPEG_OUTPUT_RGB;
  }
  return NVJPEG_OUTPUT_BGR;
}

const unsigned char* bytes_of(std::string_view file) {
  return reinterpret_cast<const unsigned char*>(file.data());
}

// One of nvJPEG's decoders: the GPU's hardware JPEG decoder, or kernels. Missing parts of a damaged
// file get whatever an engine has in its memory, without an error.
class JpegEngine {
 public:
  explicit JpegEngine(nvjpegBackend_t backend) {
    // Colours between their samples are interpolated, as CPU decoders do it.
#ifdef NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION
    constexpr unsigned kFlags = NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION;
#else
    constexpr unsigned kFlags = NVJPEG_FLAGS_DEFAULT;
#endif
    good_ = nvjpegCreateEx(backend, nullptr, nullptr, kFlags, &handle_) == NVJPEG_STATUS_SUCCESS &&
            nvjpegJpegStateCreate(handle_, &state_) == NVJPEG_STATUS_SUCCESS &&
            nvjpegJpegStreamCreate(handle_, &header_) == NVJPEG_STATUS_SUCCESS;
  }
  ~JpegEngine() {
    if (header_) nvjpegJpegStreamDestroy(header_);
    if (state_) nvjpegJpegStateDestroy(state_);
    if (handle_) nvjpegDestroy(handle_);
  }
  JpegEngine(const JpegEngine&) = delete;
  JpegEngine& operator=(const JpegEngine&) = delete;

  // False: this GPU has no such engine.
  bool good() const { return good_; }

  // Moves those that it cannot decode to `left`.
  void decode(const std::vector<JpegDecoder::Jpeg>& jpegs, nvjpegOutputFormat_t format,
              cudaStream_t stream, std::vector<JpegDecoder::Jpeg>& left) {
    files_.clear();
    sizes_.clear();
    images_.clear();
    std::vector<JpegDecoder::Jpeg> taken;
    for (const JpegDecoder::Jpeg& jpeg : jpegs) {
      if (!takes(jpeg.file)) {
        left.push_back(jpeg);
        continue;
      }
      taken.push_back(jpeg);
      files_.push_back(bytes_of(jpeg.file));
      sizes_.push_back(jpeg.file.size());
      nvjpegImage_t image{};
      const int64_t plane = jpeg.height * jpeg.width;
      for (int i = 0; i < (format == NVJPEG_OUTPUT_Y ? 1 : 3); ++i) {
        image.channel[i] = jpeg.to + i * plane;
        image.pitch[i] = static_cast<size_t>(jpeg.width);
      }
      images_.push_back(image);
    }
    if (taken.empty() || queue(format, stream)) return;
    left.insert(left.end(), taken.begin(), taken.end());
  }

 private:
  bool takes(std::string_view file) {
    int refused = 1;  // it returns 0 for files that it supports
    return nvjpegJpegStreamParseHeader(handle_, bytes_of(file), file.size(), header_) ==
               NVJPEG_STATUS_SUCCESS &&
           nvjpegDecodeBatchedSupported(handle_, header_, &refused) == NVJPEG_STATUS_SUCCESS &&
           refused == 0;
  }

  bool queue(nvjpegOutputFormat_t format, cudaStream_t stream) {
    if (files_.size() != batch_ || format != format_) {
      // The number of CPU threads is no longer used by the library.
      if (nvjpegDecodeBatchedInitialize(handle_, state_, static_cast<int>(files_.size()), 1,
                                        format) != NVJPEG_STATUS_SUCCESS)
        return false;
      batch_ = files_.size();
      format_ = format;
    }
    const nvjpegStatus_t status =
        nvjpegDecodeBatched(handle_, state_, files_.data(), sizes_.data(), images_.data(), stream);
    if (status == NVJPEG_STATUS_SUCCESS) return true;
    batch_ = 0;  // a failed batch is started again
    check_cuda(cudaStreamSynchronize(stream), "decoding JPEGs");
    return false;
  }

  nvjpegHandle_t handle_ = nullptr;
  nvjpegJpegState_t state_ = nullptr;
  nvjpegJpegStream_t header_ = nullptr;
  bool good_;
  size_t batch_ = 0;  // batch size that state_ is initialized for
  nvjpegOutputFormat_t format_ = NVJPEG_OUTPUT_BGR;
  std::vector<const unsigned char*> files_;
  std::vector<size_t> sizes_;
  std::vector<nvjpegImage_t> images_;
};

class NvJpegDecoder : public JpegDecoder {
 public:
  explicit NvJpegDecoder(cudaStream_t stream) : stream_(stream) {
    load_nvjpeg();
    for (const nvjpegBackend_t backend : {NVJPEG_BACKEND_HARDWARE, NVJPEG_BACKEND_GPU_HYBRID}) {
      auto engine = std::make_unique<JpegEngine>(backend);
      if (engine->good()) engines_.push_back(std::move(engine));
    }
    require(!engines_.empty(), "nvJPEG does not start on this GPU");
  }
  ~NvJpegDecoder() override { cudaStreamSynchronize(stream_); }

  std::vector<Jpeg> decode(const std::vector<Jpeg>& jpegs, Planes planes) override {
    std::vector<Jpeg> left = jpegs;
    for (const auto& engine : engines_) {
      if (left.empty()) break;
      std::vector<Jpeg> refused;
      engine->decode(left, format_of(planes), stream_, refused);
      left = std::move(refused);
    }
    return left;
  }

 private:
  cudaStream_t stream_;
  std::vector<std::unique_ptr<JpegEngine>> engines_;  // in order of preference
};

}  // namespace

std::unique_ptr<JpegDecoder> open_jpeg_decoder(BatchStage& stage, std::string& why) {
  try {
    return std::make_unique<NvJpegDecoder>(static_cast<cudaStream_t>(stage.stream()));
  } catch (const DeviceLost&) {
    throw;
  } catch (const Error& error) {
    why = error.what();
    return nullptr;
  }
}

}  // namespace crema
