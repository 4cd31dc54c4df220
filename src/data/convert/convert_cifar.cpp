#include "base/error.h"
#include "base/files.h"
#include "data/convert/convert.h"
#include "data/databases/database_writer.h"

namespace crema {
namespace {

constexpr int side = 32, channels = 3;
constexpr size_t image_bytes = size_t{side} * side * channels,
                 record_bytes = 1 + image_bytes;  // a label, then the planes

// Appends the records of one file; returns their number.
int64_t append(const std::string& path, int64_t first, DatabaseWriter& writer) {
  const std::string content = read_file(path);
  require(!content.empty() && content.size() % record_bytes == 0, path,
          ": is not a CIFAR-10 binary file: its ", content.size(),
          " bytes are not a number of records of ", record_bytes);
  const int64_t count = static_cast<int64_t>(content.size() / record_bytes);
  Datum datum;
  datum.set_channels(channels);
  datum.set_height(side);
  datum.set_width(side);
  for (int64_t i = 0; i < count; ++i) {
    const char* record = content.data() + static_cast<size_t>(i) * record_bytes;
    datum.set_label(static_cast<unsigned char>(record[0]));
    datum.set_data(record + 1, image_bytes);
    writer.put(numbered_key(first + i, 5), datum);
  }
  return count;
}

}  // namespace

void convert_cifar(const std::string& in_folder, const std::string& out_folder, Backend backend,
                   Log& log) {
  const std::string kind = name_of(backend);
  const std::string train_path = out_folder + "/cifar10_train_" + kind,
                    test_path = out_folder + "/cifar10_test_" + kind;
  require(folder_exists(in_folder), in_folder, ": no such folder");
  // Checked before the work, not halfway through it.
  require(!file_exists(test_path), test_path,
          ": exists already; remove it, or choose another folder");
  const std::unique_ptr<DatabaseWriter> train = create_database(train_path, backend);
  log.info("Writing Training data");
  int64_t count = 0;
  for (int batch = 1; batch <= 5; ++batch) {
    log.info(cat("Training Batch ", batch));
    count += append(cat(in_folder, "/data_batch_", batch, ".bin"), count, *train);
  }
  const std::unique_ptr<DatabaseWriter> test = create_database(test_path, backend);
  log.info("Writing Testing data");
  append(in_folder + "/test_batch.bin", 0, *test);
  train->complete();
  test->complete();
  train->finish();
  test->finish();
}

}  // namespace crema
