#include "base/error.h"
#include "data/convert/cifar_files.h"
#include "data/convert/parts.h"

namespace crema {
namespace {

void put(const CifarImages& from, Parts& parts) {
  Datum datum;
  datum.set_channels(kCifarChannels);
  datum.set_height(kCifarSide);
  datum.set_width(kCifarSide);
  parts.each_record([&](Parts::Part& part, int64_t i, int64_t index) {
    const auto at = static_cast<size_t>(index);
    datum.set_label(from.labels[at]);
    datum.set_data(from.images[at], kCifarBytes);
    part.put(numbered_key(i, 5), datum, datum.label());
  });
  parts.complete();
}

}  // namespace

void convert_cifar(const std::string& in_folder, const std::string& out_folder,
                   const ConvertOptions& options, Log& log, bool coarse) {
  const CifarFiles files = find_cifar(in_folder, coarse);
  const auto path = [&](const char* part) {
    return cat(out_folder, "/", files.name, "_", part, "_", name_of(options.format.backend));
  };
  CifarImages training, test;
  log.info("Writing Training data");
  for (size_t batch = 0; batch < files.training.size(); ++batch) {
    log.info(cat("Training Batch ", batch + 1));
    read_cifar(files, files.training[batch], training);
  }
  log.info("Writing Testing data");
  read_cifar(files, files.test, test);
  // All databases are begun before the first is written, so that none exists where one cannot.
  ConvertOptions named = options;
  named.format.classes = read_cifar_names(files);
  Parts trained(path("train"), training.labels, false, named);
  Parts tested(path("test"), test.labels, false, named.format);
  put(training, trained);
  put(test, tested);
  trained.finish(log);
  tested.finish(log);
}

}  // namespace crema
