// GpuImages: batches of a database whose images come to the GPU as bytes and become values there.
// The loader's threads read the records in its order, decode and change images; one more thread
// brings a batch to the GPU while the net computes on the one before. With transform_param {
// decoder: GPU } nvJPEG decodes them there; the loader's threads decode what it cannot (progressive
// and CMYK JPEGs, PNGs). Order, labels, crops and mirroring are those of a Loader with the same
// transform and options.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "data/databases/gpu_batch.h"
#include "data/databases/records.h"
#include "data/loader/loader.h"
#include "device/jpeg_decoder.h"
#include "device/staging.h"

namespace crema {

class GpuImages {
 public:
  // With nvJPEG. Null if the CPU must decode, after a warning with the reason: the net is not on a
  // GPU, there is no nvJPEG, records are not encoded, or a batch is one image, whose size the net
  // follows. Error if the transform changes images in a way that only CPUs support.
  static std::unique_ptr<GpuImages> decode_there(Context& context,
                                                 std::shared_ptr<const Records> records,
                                                 LoaderOptions options);
  // Images that the CPU has decoded and changed: the values are those of a Loader, bit for bit.
  // Null if the net is not on a GPU, records have real numbers, samples are mixed, or the transform
  // needs all of an image that would be decoded in part.
  static std::unique_ptr<GpuImages> of_bytes(Context& context,
                                             std::shared_ptr<const Records> records,
                                             LoaderOptions options);
  ~GpuImages();
  GpuImages(const GpuImages&) = delete;
  GpuImages& operator=(const GpuImages&) = delete;

  // Waits until batch number `pass` is there, and queues what makes the tops from it. data: (batch,
  // C, H, W) in any real type and order; labels: float32, or empty. Sequential calls are fast.
  // Returns the epoch of the batch's last sample. Error of a record: thrown with its batch.
  int64_t batch(Context& context, uint64_t pass, const Tensor& data, const Tensor& labels);

  // As Loader::skip().
  void skip(int64_t samples);
  // Bytes of GPU memory.
  size_t bytes() const { return stage_->bytes() + transform_.mean.bytes(); }
  bool decodes_there() const { return decoder_ != nullptr; }
  // Seconds that the GPU has waited for a batch while idle.
  double waited() const { return waited_; }

 private:
  static constexpr int kSlots = BatchStage::kSlots;
  struct Slot {
    int64_t number = -1;  // the batch that is complete here
    int64_t epoch = 0;
    const StoredPicture* pictures = nullptr;  // on the GPU, and the labels behind them
    const float* labels = nullptr;
    std::exception_ptr error;
  };

  GpuImages(Context& context, std::shared_ptr<const Records> records, const LoaderOptions& options,
            const Record& first, std::unique_ptr<BatchStage> stage,
            std::unique_ptr<JpegDecoder> decoder);
  void work();
  void bring(int64_t number, Slot& slot);
  void decode_here(const Record& record, const SampleIndex& sample_index, uint8_t* to);
  void start_at(int64_t number, std::unique_lock<std::mutex>& lock);
  Slot& slot(int64_t number) { return slots_[number % kSlots]; }

  const std::shared_ptr<const Records> records_;
  const std::unique_ptr<BatchStage> stage_;
  const std::unique_ptr<JpegDecoder> decoder_;  // null: the loader's threads decode
  const BatchTransform transform_;
  const JpegDecoder::Planes planes_;
  const int gpu_;
  Log& log_;
  Loader loader_;  // gives records with their files, or with planes
  double waited_ = 0;
  bool warned_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  Slot slots_[kSlots];
  int64_t taken_ = -1,
          next_ = 0;  // the batch that the net had last, and the one to be brought next
  bool busy_ = false, stopping_ = false;
  std::thread thread_;  // with the first batch
};

}  // namespace crema
