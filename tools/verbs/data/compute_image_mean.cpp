// `crema compute_image_mean DB [OUT]`: the mean image of a database of any kind, for `mean_file`,
// and of each channel, for `mean_value`.
#include "base/error.h"
#include "data/convert/compute_mean.h"
#include "data/databases/find_database.h"
#include "tools/db/db.h"
#include "tools/verb.h"

namespace crema {
namespace {

using ComputeImageMeanFlags = FlagsOf<"backend", "threads">;

int run_compute_image_mean(const VerbCall& call, const ComputeImageMeanFlags& flags) {
  const std::string& path = call.arguments[0];
  // Caffe of 2014 took the kind of database as a third argument.
  const bool named = call.arguments.size() > 2;
  require(!named || call.given.count("backend") == 0, "-backend ", flags.backend, " and \"",
          named ? call.arguments[2] : "", "\" name the kind of database twice; keep one of them");
  const std::string backend = named ? call.arguments[2] : flags.backend;
  const Backend wanted = backend_named(backend);
  const FoundDatabase found = find_database(path);
  require((!named && call.given.count("backend") == 0) || found.backend == wanted, path,
          ": is of kind ", title_of(found.backend), ", but -backend is ", backend,
          "; without it any kind is read");
  call.log.info(cat("Opened ", name_of(found.backend), " ", path));
  const Mean mean = compute_mean(*found.source, threads_for(flags.threads), call.log);
  if (call.arguments.size() > 1) {
    call.log.info("Write to " + call.arguments[1]);
    write_mean(mean, call.arguments[1]);
  }
  const std::vector<float> channels = mean.channels();
  call.log.info(cat("Number of channels: ", channels.size()));
  for (size_t c = 0; c < channels.size(); ++c)
    call.log.answer(cat("mean_value channel [", c, "]: ", channels[c]));
  return 0;
}

REGISTER_VERB(
    compute_image_mean,
    {.summary = "computes the mean image of a database",
     .usage = "[flags] DB [OUT.binaryproto [KIND]]",
     .example = "crema compute_image_mean digits_train_lmdb mean.binaryproto",
     .meanings = {{"backend", "The kind of database: lmdb or leveldb. Detected if omitted."},
                  {"threads", "Threads that read and decode images; 0: one per processor."}},
     .min_arguments = 1,
     .max_arguments = 3,
     .run = run_compute_image_mean});

}  // namespace
}  // namespace crema
