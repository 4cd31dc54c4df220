// `crema compute_image_mean DB [OUT]`: the mean image of a database, for `mean_file`, and of each
// channel, for `mean_value`.
#include "base/strings.h"
#include "data/databases/compute_mean.h"
#include "tools/flags.h"
#include "tools/verb.h"

namespace crema {
namespace {

int run_compute_image_mean(const VerbCall& call) {
  const Backend backend = backend_named(FLAGS_backend);
  const std::unique_ptr<Source> source = open_database(call.arguments[0], backend);
  call.log.info(cat("Opened ", name_of(backend), " ", call.arguments[0]));
  const Mean mean = compute_mean(*source, call.log);
  if (call.arguments.size() > 1) {
    call.log.info("Write to " + call.arguments[1]);
    write_mean(mean, call.arguments[1]);
  }
  const std::vector<float> channels = mean.channels();
  call.log.info(cat("Number of channels: ", channels.size()));
  for (size_t c = 0; c < channels.size(); ++c)
    call.log.info(cat("mean_value channel [", c, "]: ", channels[c]));
  return 0;
}

REGISTER_VERB(compute_image_mean, {.summary = "computes the mean image of a database",
                                   .usage = "[-backend lmdb|leveldb] DB [OUT.binaryproto]",
                                   .flags = {"backend"},
                                   .min_arguments = 1,
                                   .max_arguments = 2,
                                   .run = run_compute_image_mean});

}  // namespace
}  // namespace crema
