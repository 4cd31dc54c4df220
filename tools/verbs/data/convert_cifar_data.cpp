// `crema convert_cifar_data IN OUT [lmdb]`: converts the files of CIFAR-10 or CIFAR-100 in the folder
// IN, binary or pickled for Python, into OUT/cifar10_train_lmdb and OUT/cifar10_test_lmdb.
#include "tools/flags/convert_flags.h"

namespace crema {
namespace {

using ConvertCifarDataFlags = FlagsOf<"backend", "coarse", "split", "seed", "overwrite",
                                      "hdf5_rows", "hdf5_compress", "scale">;

int run_convert_cifar_data(const VerbCall& call, const ConvertCifarDataFlags& flags) {
  std::string backend = flags.backend;
  if (call.arguments.size() > 2) {
    backend = call.arguments[2];
    require(call.given.count("backend") == 0 || flags.backend == backend, backend, " and -backend ",
            flags.backend, ": give one of them");
  }
  convert_cifar(call.arguments[0], call.arguments[1], convert_options(call, flags, backend),
                call.log, flags.coarse);
  return 0;
}

REGISTER_VERB(convert_cifar_data,
              {.summary = "makes databases from CIFAR-10's or CIFAR-100's files",
               .usage = "[flags] IN_FOLDER OUT_FOLDER [lmdb|leveldb|hdf5]",
               .example = "crema convert_cifar_data cifar-10-batches-bin/ .",
               .meanings = {{"seed", "The seed of -split: the same one gives the same parts."}},
               .min_arguments = 2,
               .max_arguments = 3,
               .run = run_convert_cifar_data});

}  // namespace
}  // namespace crema
