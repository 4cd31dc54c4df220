#include "data/convert/compute_mean.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "data/convert/in_order.h"
#include "data/convert/progress.h"
#include "data/databases/find_database.h"
#include "data/images/record.h"

namespace crema {
namespace {

// The number of records that one thread adds up, which gives the same sums for any number of
// threads: those of bytes are integers, exact in any order, and those of real numbers are rounded
// in the order of the records inside a block and of the blocks.
constexpr int64_t kRecordsOfBlock = 32;
static_assert(kRecordsOfBlock * 255 <= UINT16_MAX, "sums of bytes have 16 bits");
constexpr size_t kWaitingSums = size_t{256} << 20;

struct BlockSums {
  size_t bytes = 0;
  std::vector<double> sums;  // plane after plane
};

// Adds records of one shape. Bytes are added with 16 bits, many at a time on a CPU.
class RecordAdder {
 public:
  RecordAdder(const Shape& shape, std::vector<double>& sums)
      : channels_(shape[0]), plane_(shape.count(1)), sums_(sums) {
    sums_.assign(static_cast<size_t>(shape.count()), 0);
  }

  void add(const Record& record) {
    const size_t count = sums_.size();
    if (record.bytes == nullptr) {
      for (size_t i = 0; i < count; ++i) sums_[i] += static_cast<double>(record.values[i]);
      return;
    }
    std::vector<uint16_t>& sums = record.interleaved ? of_pixels_ : of_planes_;
    sums.resize(count);
    for (size_t i = 0; i < count; ++i) sums[i] = static_cast<uint16_t>(sums[i] + record.bytes[i]);
  }

  void finish() {
    for (size_t i = 0; i < of_planes_.size(); ++i) sums_[i] += of_planes_[i];
    if (of_pixels_.empty()) return;
    for (int64_t c = 0; c < channels_; ++c) {
      for (int64_t i = 0; i < plane_; ++i)
        sums_[static_cast<size_t>(c * plane_ + i)] +=
            of_pixels_[static_cast<size_t>(i * channels_ + c)];
    }
  }

 private:
  const int64_t channels_, plane_;
  std::vector<double>& sums_;
  std::vector<uint16_t> of_planes_, of_pixels_;
};

// Reads the records of a source with an image.
class ImageReader {
 public:
  explicit ImageReader(const Source& source) : source_(source), kind_(kind_of_records(source)) {
    require(kind_ != RecordKind::sparse, source.path(),
            ": holds sparse vectors; a mean image is made of images");
    Record first;
    read(0, first);
    shape_ = first.shape();
  }

  const Shape& shape() const { return shape_; }

  void read(int64_t index, Record& record) const {
    try {
      if (kind_ == RecordKind::annotated) {
        AnnotatedDatum annotated;
        source_.read(index, annotated);
        record.datum.Swap(annotated.mutable_datum());
      } else {
        source_.read(index, record.datum);
      }
      decode(record, Color::as_stored);
      if (index > 0 && record.shape() != shape_) {
        fail("its shape ", record.shape().brief(), " is not ", shape_.brief(),
             ", that of the first record; a mean needs images of one size: convert them with "
             "-resize_height and -resize_width");
      }
    } catch (const Error& problem) {
      fail(source_.describe(index), ": ", problem.what());
    }
  }

 private:
  const Source& source_;
  const RecordKind kind_;
  Shape shape_;
};

}  // namespace

Mean compute_mean(const Source& source, int threads, Log& log) {
  log.info("Starting iteration");
  const ImageReader reader(source);
  const int64_t count = source.size(), blocks = (count + kRecordsOfBlock - 1) / kRecordsOfBlock;
  const auto end_of = [&](int64_t block) { return std::min(count, (block + 1) * kRecordsOfBlock); };
  const auto add_block = [&](int64_t block, BlockSums& made) {
    RecordAdder adder(reader.shape(), made.sums);
    made.bytes = made.sums.size() * sizeof(double);
    Record record;
    for (int64_t index = block * kRecordsOfBlock; index < end_of(block); ++index) {
      reader.read(index, record);
      adder.add(record);
    }
    adder.finish();
  };
  std::vector<double> sums(static_cast<size_t>(reader.shape().count()));
  Progress progress(count);
  const auto begin = std::chrono::steady_clock::now();
  InOrder<BlockSums> made(blocks, threads, kWaitingSums, add_block);
  for (int64_t block = 0; block < blocks; ++block) {
    const std::vector<double>& of_block = made.next().sums;
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += of_block[i];
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    const std::string line = progress.line(seconds.count(), end_of(block), end_of(block));
    if (!line.empty()) log.info(line);
  }
  log.info(Progress::last(count));
  Mean mean;
  mean.shape = reader.shape();
  for (const double sum : sums)
    mean.values.push_back(static_cast<float>(sum) / static_cast<float>(count));
  return mean;
}

}  // namespace crema
