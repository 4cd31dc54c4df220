// `crema convert_csv TABLE DB`: converts a table of numbers, a row in each line, into a database.
#include "tools/flags/convert_flags.h"

namespace crema {
namespace {

std::vector<int64_t> extents_of_flag() {
  std::vector<int64_t> extents;
  for (const std::string& part : split(FLAGS_shape, 'x')) {
    int64_t extent = 0;
    const char* const end = part.data() + part.size();
    const auto [rest, problem] = std::from_chars(part.data(), end, extent);
    require(problem == std::errc() && rest == end, "-shape ", FLAGS_shape,
            ": expected the number of values, or channels x height x width, such as 1x28x28");
    extents.push_back(extent);
  }
  return extents;
}

int run_convert_csv(const VerbCall& call) {
  TableOptions options;
  options.to = convert_options(call, FLAGS_backend);
  options.shuffle = FLAGS_shuffle;
  options.labels = split(FLAGS_label, ',');
  options.shape = extents_of_flag();
  convert_csv(call.arguments[0], call.arguments[1], options, call.log);
  return 0;
}

REGISTER_VERB(
    convert_csv,
    {.summary = "makes a database from a table of numbers",
     .usage = "[flags] TABLE DB",
     .example = "crema convert_csv -label species -split 0.8 iris.csv iris_lmdb",
     .flags = {"backend", "label", "shape", "shuffle", "split", "seed", "overwrite", "hdf5_rows",
               "hdf5_compress", "scale"},
     .meanings = {{"shuffle", "Shuffle the rows."},
                  {"seed", "The seed of -split and -shuffle: the same one gives the same order."}},
     .min_arguments = 2,
     .max_arguments = 2,
     .run = run_convert_csv});

}  // namespace
}  // namespace crema
