#include "data/databases/gpu_images.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/error.h"
#include "data/images/image_header.h"
#include "device/aligned.h"
#include "device/device_scope.h"

namespace crema {
namespace {

// The available part of the image.
ImagePart part_of(const Record& record) {
  return record.part.height > 0 ? record.part : ImagePart{0, 0, record.height, record.width};
}

size_t bytes_of(const Record& record) {
  const ImagePart part = part_of(record);
  return static_cast<size_t>(record.channels * part.height * part.width);
}

// A record's image as planes, if it is not encoded.
void to_planes(Record& record) {
  require(record.bytes != nullptr, "the record holds real numbers, but the first one bytes");
  if (!record.interleaved) return;
  const ImagePart part = part_of(record);
  const int64_t plane = part.height * part.width;
  std::vector<uint8_t> planes(static_cast<size_t>(record.channels * plane));
  for (int64_t c = 0; c < record.channels; ++c) {
    for (int64_t i = 0; i < plane; ++i)
      planes[c * plane + i] = record.bytes[i * record.channels + c];
  }
  record.image.pixels = std::move(planes);
  record.bytes = record.image.pixels.data();
  record.interleaved = false;
}

void put_red_first(Record& record) {
  if (record.channels != 3) return;
  const auto plane = static_cast<size_t>(record.height * record.width);
  if (record.bytes != record.image.pixels.data()) {
    record.image.pixels.assign(record.bytes, record.bytes + 3 * plane);
    record.bytes = record.image.pixels.data();
  }
  std::vector<uint8_t>& planes = record.image.pixels;
  std::swap_ranges(planes.begin(), planes.begin() + plane, planes.begin() + 2 * plane);
}

// On the CPU.
void decode_to_planes(const Transform& transform, Record& record) {
  decode(record, transform.color());
  to_planes(record);
  if (transform.augmentation().reverses_colors()) put_red_first(record);
}

// For nvJPEG only the shape is set, no `bytes`.
void read_shape(const Transform& transform, Record& record) {
  const Datum& datum = record.datum;
  const Color color = transform.color();
  const std::optional<ImageHeader> header =
      datum.encoded() ? read_image_header(datum.data()) : std::nullopt;
  const bool upright = header && (header->orientation == 1 || color == Color::as_stored);
  if (!header || !header->baseline || !upright || header->exceeds(kMaxPixels))
    return decode_to_planes(transform, record);
  record.label = datum.label();
  record.channels = color == Color::as_stored ? header->channels : color == Color::color ? 3 : 1;
  record.height = header->height;
  record.width = header->width;
  record.bytes = nullptr;
  record.values = nullptr;
  record.interleaved = false;
}

// Records as the loader hands them over.
class RecordsForGpu : public Dataset {
 public:
  // channels: of each image, before conversion to grey.
  RecordsForGpu(std::shared_ptr<const Records> records, int64_t channels)
      : records_(std::move(records)), channels_(channels) {}

  int64_t size() const override { return records_->size(); }
  RecordIndex record_index(int64_t position) const override {
    return records_->record_index(position);
  }
  int64_t shuffled(int64_t index, const Random& of_epoch) const override {
    return records_->shuffled(index, of_epoch);
  }
  std::string describe(const SampleIndex& sample_index) const override {
    return records_->describe(sample_index);
  }
  std::string how_to_equalize() const override { return records_->how_to_equalize(); }
  std::optional<int64_t> class_of(int64_t record) const override {
    return records_->class_of(record);
  }
  bool hands_over() const override { return true; }
  void write(const SampleIndex&, Sample& sample, float*) const override {
    records_->set_labels(sample);
  }

 protected:
  void check_channels(const Record& record) const {
    require(record.channels == channels_, "the image has ", record.channels,
            " channels, but the first one ", channels_,
            "; give transform_param force_color or force_gray");
  }
  const std::shared_ptr<const Records> records_;

 private:
  const int64_t channels_;
};

// Files for nvJPEG, and planes for images that it cannot decode.
class FilesForGpu : public RecordsForGpu {
  using RecordsForGpu::RecordsForGpu;
  void load(const SampleIndex& sample_index, Sample& sample) const override {
    Record& record = sample.record;
    records_->source().read(sample_index.record_index.index, record.datum);
    read_shape(records_->transform(), record);
    check_channels(record);
    sample.shape = records_->transform().output(record.shape());
    const int64_t labels = record.datum.labels_size();
    sample.label_shape = labels > 1 ? Shape{labels} : Shape();
  }
};

// Planes, of the cropped part.
class PlanesForGpu : public RecordsForGpu {
  using RecordsForGpu::RecordsForGpu;
  bool decodes() const override { return records_->decodes(); }
  void load(const SampleIndex& sample_index, Sample& sample) const override {
    records_->load(sample_index, sample);
    to_planes(sample.record);
    check_channels(sample.record);
  }
};

JpegDecoder::Planes planes_of(const Transform& transform, int64_t channels) {
  if (channels == 1) return JpegDecoder::Planes::gray;
  return transform.augmentation().reverses_colors() ? JpegDecoder::Planes::rgb
                                                    : JpegDecoder::Planes::bgr;
}

size_t planes_at(int64_t batch_size, int64_t labels) {
  return aligned(static_cast<size_t>(batch_size) * sizeof(StoredPicture)) +
         aligned(static_cast<size_t>(labels) * sizeof(float));
}

}  // namespace

std::unique_ptr<GpuImages> GpuImages::decode_there(Context& context,
                                                   std::shared_ptr<const Records> records,
                                                   LoaderOptions options) {
  const Transform& transform = records->transform();
  const Augmentation& augmentation = transform.augmentation();
  require(
      !transform.changes().any() && !transform.changes().mixes() && !transform.numbers().flow &&
          (!augmentation.any() || augmentation.only_reverses_colors()),
      "transform_param has decoder: GPU, but also changes images before they are cropped, which "
      "is computed on the CPU, from images that it decodes; remove `decoder: GPU`, or resize the "
      "images when they are converted and leave out the changes");
  const auto on_the_cpu = [&](const std::string& why) {
    context.log().warning("decoder: GPU: images are decoded on the CPU: " + why);
    return nullptr;
  };
  if (!records->decodes()) {
    context.log().warning("decoder: GPU has no effect: the records are not encoded");
    return nullptr;
  }
  if (context.device() == Device::cpu) return on_the_cpu("the net runs there");
  if (options.batch_size == 1)
    return on_the_cpu("batches of one image, whose size a net follows, are made there");
  std::string why;
  std::unique_ptr<BatchStage> stage = open_batch_stage(context);
  std::unique_ptr<JpegDecoder> decoder = open_jpeg_decoder(*stage, why);
  if (!decoder) return on_the_cpu(why);
  Record first;
  try {
    records->source().read(0, first.datum);
    read_shape(transform, first);
  } catch (const Error& problem) {
    fail(records->describe({}), ": ", problem.what());
  }
  if (options.workers == 0) {
    options.workers = loader_workers(true, false);
    options.reserve = loader_reserve(true, false);
  }
  return std::unique_ptr<GpuImages>(new GpuImages(context, std::move(records), options, first,
                                                  std::move(stage), std::move(decoder)));
}

std::unique_ptr<GpuImages> GpuImages::of_bytes(Context& context,
                                               std::shared_ptr<const Records> records,
                                               LoaderOptions options) {
  const Transform& transform = records->transform();
  if (context.device() == Device::cpu || options.batch_size == 1 || transform.changes().mixes() ||
      transform.numbers().flow)
    return nullptr;
  // A mean image is subtracted by the position in the whole image.
  if (records->encoded() && !transform.mean_image().empty()) return nullptr;
  Sample first;
  try {
    records->load({}, first);
  } catch (const Error& problem) {
    fail(records->describe({}), ": ", problem.what());
  }
  if (!first.record.bytes) return nullptr;
  if (options.workers == 0) {
    options.workers = loader_workers(records->decodes(), false);
    options.reserve = loader_reserve(records->decodes(), false);
  }
  return std::unique_ptr<GpuImages>(new GpuImages(
      context, std::move(records), options, first.record, open_batch_stage(context), nullptr));
}

GpuImages::GpuImages(Context& context, std::shared_ptr<const Records> records,
                     const LoaderOptions& options, const Record& first,
                     std::unique_ptr<BatchStage> stage, std::unique_ptr<JpegDecoder> decoder)
    : records_(std::move(records)),
      stage_(std::move(stage)),
      decoder_(std::move(decoder)),
      transform_(context, records_->transform(), first.channels),
      planes_(planes_of(records_->transform(), first.channels)),
      gpu_(context.ordinal()),
      log_(context.log()),
      loader_(decoder_ ? std::shared_ptr<const Dataset>(
                             std::make_shared<FilesForGpu>(records_, first.channels))
                       : std::make_shared<PlanesForGpu>(records_, first.channels),
              options) {
  // Now, so that the net knows what is left; more if later images are larger.
  const size_t bytes = planes_at(options.batch_size, loader_.label_shape().count()) +
                       static_cast<size_t>(options.batch_size) * aligned(bytes_of(first));
  for (int i = 0; i < kSlots; ++i) stage_->room(i, bytes);
}

GpuImages::~GpuImages() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

int64_t GpuImages::batch(Context& context, uint64_t pass, const Tensor& data,
                         const Tensor& labels) {
  const auto number = static_cast<int64_t>(pass);
  std::unique_lock<std::mutex> lock(mutex_);
  if (!thread_.joinable() || number != taken_ + 1) start_at(number, lock);
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  Slot& wanted = slot(number);
  const auto complete = [&] { return wanted.number == number; };
  // The host runs ahead of the GPU: blocking here is fine while the GPU still computes.
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> idle;
  while (!complete()) {
    if (!idle && stage_->is_idle(context)) idle = Clock::now();
    idle ? changed_.wait(lock) : void(changed_.wait_for(lock, std::chrono::microseconds(100)));
  }
  if (idle) waited_ += std::chrono::duration<double>(Clock::now() - *idle).count();
  if (wanted.error) std::rethrow_exception(wanted.error);
  transform_.make(context, wanted.pictures, data);
  if (labels) {
    copy_bytes(context, labels.raw(), Device::gpu, wanted.labels, Device::gpu, labels.bytes());
  }
  stage_->release(context, static_cast<int>(number % kSlots));
  taken_ = number;
  changed_.notify_all();
  return wanted.epoch;
}

void GpuImages::skip(int64_t samples) {
  std::unique_lock<std::mutex> lock(mutex_);
  next_ = taken_ + kSlots + 1;  // nothing begins
  changed_.wait(lock, [&] { return !busy_; });
  for (Slot& slot : slots_) slot.number = -1;
  loader_.skip(samples);
  next_ = taken_ + 1;
  changed_.notify_all();
}

void GpuImages::start_at(int64_t number, std::unique_lock<std::mutex>& lock) {
  next_ = number + kSlots;  // no work begins until all are unset
  taken_ = number - 1;
  changed_.wait(lock, [&] { return !busy_; });
  for (Slot& slot : slots_) slot.number = -1;
  next_ = number;
  changed_.notify_all();
}

void GpuImages::work() {
  const DeviceScope scope(gpu_);
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || next_ <= taken_ + kSlots; });
    if (stopping_) return;
    const int64_t number = next_++;
    busy_ = true;
    lock.unlock();
    Slot made;
    try {
      bring(number, made);
    } catch (...) {
      made.error = std::current_exception();
    }
    made.number = number;
    lock.lock();
    slot(number) = made;
    busy_ = false;
    changed_.notify_all();
  }
}

void GpuImages::bring(int64_t number, Slot& slot) {
  const Batch& batch = loader_.batch(number);
  slot.epoch = batch.epoch;
  const size_t count = batch.records.size(), labels_at = aligned(count * sizeof(StoredPicture));
  size_t bytes = planes_at(static_cast<int64_t>(count), static_cast<int64_t>(batch.labels.size()));
  std::vector<size_t> offsets;
  for (const HandedOver& handed : batch.records) {
    offsets.push_back(bytes);
    bytes += aligned(bytes_of(handed.record));
  }
  uint8_t* const room = stage_->room(static_cast<int>(number % kSlots), bytes);
  std::vector<StoredPicture> pictures;
  std::vector<JpegDecoder::Jpeg> jpegs;
  for (size_t i = 0; i < count; ++i) {
    const Record& record = batch.records[i].record;
    uint8_t* const to = room + offsets[i];
    const Draw draw = batch.records[i].sample_index.draw();
    // The part is all there is: pixels of the crop beyond it are padding.
    const ImagePart part = part_of(record);
    Cut cut = transform_.numbers.cut(record.height, record.width, draw);
    cut.top -= part.top;
    cut.left -= part.left;
    pictures.push_back({to, part.height, part.width, cut});
    if (record.bytes) {
      stage_->copy(to, record.bytes, bytes_of(record));
    } else {
      jpegs.push_back({record.datum.data(), record.height, record.width, to, i});
    }
  }
  if (decoder_) {
    for (const JpegDecoder::Jpeg& refused : decoder_->decode(jpegs, planes_)) {
      const HandedOver& handed = batch.records[refused.index];
      decode_here(handed.record, handed.sample_index, refused.to);
    }
  }
  stage_->copy(room, pictures.data(), count * sizeof(StoredPicture));
  stage_->copy(room + labels_at, batch.labels.data(), batch.labels.size() * sizeof(float));
  stage_->finish();
  slot.pictures = reinterpret_cast<const StoredPicture*>(room);
  slot.labels = reinterpret_cast<const float*>(room + labels_at);
}

// Files that nvJPEG refuses although their headers look valid.
void GpuImages::decode_here(const Record& record, const SampleIndex& sample_index, uint8_t* to) {
  stage_->finish();  // nothing may read the batch any more if this throws
  const std::string name = records_->describe(sample_index);
  if (!warned_) log_.warning(cat(name, ": nvJPEG does not decode it; the CPU decodes such images"));
  warned_ = true;
  Record again;
  again.datum = record.datum;
  try {
    decode_to_planes(records_->transform(), again);
    require(again.shape() == record.shape(), "the image is ", again.shape().brief(),
            ", but its header says ", record.shape().brief());
  } catch (const Error& problem) {
    fail(name, ": ", problem.what());
  }
  stage_->copy(to, again.bytes, static_cast<size_t>(again.shape().count()));
  stage_->finish();  // before `again` goes
}

}  // namespace crema
