#include "data/databases/compute_mean.h"

#include "base/error.h"
#include "data/images/record.h"

namespace crema {

Mean compute_mean(const Source& source, Log& log) {
  log.info("Starting iteration");
  Mean mean;
  std::vector<double> sums;
  Record record;
  const int64_t count = source.size();
  for (int64_t index = 0; index < count; ++index) {
    try {
      source.read(index, record.datum);
      decode(record, Color::as_stored);
      if (index == 0) {
        mean.shape = record.shape();
        sums.resize(mean.shape.count());
      }
      if (record.shape() != mean.shape) {
        fail("its shape ", record.shape().brief(), " is not ", mean.shape.brief(),
             ", that of the first record; a mean needs images of one size: convert them with "
             "-resize_height and -resize_width");
      }
    } catch (const Error& problem) {
      fail(source.describe(index), ": ", problem.what());
    }
    const int64_t plane = record.height * record.width;
    for (int64_t c = 0; c < record.channels; ++c) {
      double* sum = sums.data() + c * plane;
      const int64_t first = record.interleaved ? c : c * plane,
                    step = record.interleaved ? record.channels : 1;
      for (int64_t i = 0; i < plane; ++i) {
        const int64_t at = first + i * step;
        sum[i] += record.bytes ? static_cast<double>(record.bytes[at])
                               : static_cast<double>(record.values[at]);
      }
    }
    if ((index + 1) % 10000 == 0) log.info(cat("Processed ", index + 1, " files."));
  }
  if (count % 10000 != 0) log.info(cat("Processed ", count, " files."));
  for (const double sum : sums)
    mean.values.push_back(static_cast<float>(sum) / static_cast<float>(count));
  return mean;
}

}  // namespace crema
