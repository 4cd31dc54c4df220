// `crema convert_csv TABLE DB`: converts a table of numbers, a row in each line, into a database.
#include "tools/flags/convert_flags.h"

namespace crema {
namespace {

using ConvertCsvFlags = FlagsOf<"backend", "label", "shape", "shuffle", "split", "seed",
                                "overwrite", "hdf5_rows", "hdf5_compress", "scale">;

std::vector<int64_t> extents_in(const std::string& flag) {
  std::vector<int64_t> extents;
  for (const std::string& part : split(flag, 'x')) {
    int64_t extent = 0;
    const char* const end = part.data() + part.size();
    const auto [rest, problem] = std::from_chars(part.data(), end, extent);
    require(problem == std::errc() && rest == end, "-shape ", flag,
            ": expected the number of values, or channels x height x width, such as 1x28x28");
    extents.push_back(extent);
  }
  return extents;
}

int run_convert_csv(const VerbCall& call, const ConvertCsvFlags& flags) {
  TableOptions options;
  options.to = convert_options(call, flags, flags.backend);
  options.shuffle = flags.shuffle;
  options.labels = split(flags.label, ',');
  options.shape = extents_in(flags.shape);
  convert_csv(call.arguments[0], call.arguments[1], options, call.log);
  return 0;
}

REGISTER_VERB(
    convert_csv,
    {.summary = "makes a database from a table of numbers",
     .usage = "[flags] TABLE DB",
     .example = "crema convert_csv -label species -split 0.8 iris.csv iris_lmdb",
     .meanings = {{"shuffle", "Shuffle the rows."},
                  {"seed", "The seed of -split and -shuffle: the same one gives the same order."}},
     .min_arguments = 2,
     .max_arguments = 2,
     .run = run_convert_csv});

}  // namespace
}  // namespace crema
