// `crema bisect A B`: finds the first iteration at which two runs part, and what parts them.
#include "tools/replay/part.h"
#include "tools/replay/run_setting.h"
#include "tools/replay/work_folder.h"
#include "tools/verb.h"

namespace crema {

namespace {

using BisectFlags = RunSettingFlags;

int run_bisect(const VerbCall& call, const BisectFlags&) {
  ProgramLog& log = call.log;
  const RecordedRun a(call.arguments[0]), b(call.arguments[1]);
  const int64_t first = std::max(a.iterations().first, b.iterations().first),
                end = std::min(a.iterations().end(), b.iterations().end());
  require(first < end, call.arguments[1], ": has no iteration that ", call.arguments[0],
          " has, too: there is nothing to compare");
  const std::optional<int64_t> recorded = first_difference(a.iterations(), b.iterations());
  if (!recorded) {
    log.answer(cat("The records of both are equal, bit for bit, in ", end - first, " iterations",
                   a.iterations().end() == b.iterations().end()
                       ? ""
                       : cat("; after iteration ", end - 1, " only one of them goes on")));
    return 0;
  }
  log.info(cat("The records differ from iteration ", *recorded, " on: loss ",
               a.iterations().loss(*recorded), " and ", b.iterations().loss(*recorded)));
  for (const std::string& difference : file_differences(a, b)) log.info(difference);
  for (const std::string& difference : start_differences(a, b)) log.info(difference);
  const WorkFolder folder("crema_bisect");
  const RunSetting of_a = setting_of(call, a, folder.path()),
                   of_b = setting_of(call, b, folder.path());
  const std::optional<Parting> parting = find_parting(log, of_a, of_b, *recorded);
  if (!parting) {
    log.answer(cat(
        "Computed here, both are equal up to iteration ", *recorded,
        ": what parted them was not in their files, but in the data, the machine or the program"));
    for (const RunSetting* one : {&of_a, &of_b}) {
      for (const std::string& difference : one->differences())
        log.info(cat(one->run.folder(), ": ", difference));
    }
    return 0;
  }
  log.answer(cat("They part in iteration ", parting->iteration, ": the first that differs is ",
                 parting->what));
  return 0;
}

REGISTER_VERB(bisect,
              {.summary = "finds the first iteration at which two runs part, and what parts them",
               .usage = "[flags] DIR OTHER_DIR",
               .example = "crema bisect runs/LeNet-1 runs/LeNet-2",
               .meanings = {{"gpu", "The GPU to run on. Empty: as the runs."},
                            {"precision",
                             "The precision: fp32, tf32, bf16 or fp16. Empty: as the runs."}},
               .min_arguments = 2,
               .max_arguments = 2,
               .run = run_bisect});

}  // namespace

}  // namespace crema
