// The actions of `crema db`, a file each: tools/db_ACTION.cpp.
#pragma once

#include <string>
#include <vector>

#include "tools/verb.h"

namespace crema {

// In the order of -help.
using DbFlags = FlagsOf<"channel_mean", "strict", "backend", "overwrite", "seed", "split",
                        "hdf5_rows", "hdf5_compress", "scale", "model", "output", "batch", "phase",
                        "level", "stage", "set", "labels", "rgb", "threads">;

template <typename Flags>
concept PartOfDbFlags = std::convertible_to<DbFlags, Flags>;

// What an action does, and the flags that it takes.
class DbRun : public VerbRun {
 public:
  template <PartOfDbFlags Flags>
  DbRun(int (*run)(const VerbCall& call, const Flags& flags)) : VerbRun(run) {}
};

struct DbAction {
  const char* summary = "";
  const char* usage = "";
  size_t min_arguments = 0, max_arguments = 0;
  // `arguments` are those after the action.
  DbRun run;
};

using DbStatFlags = FlagsOf<"channel_mean", "threads">;
int run_db_stat(const VerbCall& call, const DbStatFlags& flags);

using DbVerifyFlags = FlagsOf<"strict", "threads">;
int run_db_verify(const VerbCall& call, const DbVerifyFlags& flags);

using DbCopyFlags = FlagsOf<"backend", "overwrite", "hdf5_rows", "hdf5_compress", "scale">;
int run_db_copy(const VerbCall& call, const DbCopyFlags& flags);
int run_db_merge(const VerbCall& call, const DbCopyFlags& flags);

using DbShuffleFlags =
    FlagsOf<"seed", "backend", "overwrite", "hdf5_rows", "hdf5_compress", "scale">;
int run_db_shuffle(const VerbCall& call, const DbShuffleFlags& flags);

using DbSplitFlags =
    FlagsOf<"split", "seed", "backend", "overwrite", "hdf5_rows", "hdf5_compress", "scale">;
int run_db_split(const VerbCall& call, const DbSplitFlags& flags);

using DbPeekFlags =
    FlagsOf<"model", "output", "batch", "phase", "level", "stage", "set", "labels", "rgb">;
int run_db_peek(const VerbCall& call, const DbPeekFlags& flags);

// -threads, or one for each processor.
int threads_for(int flag);

}  // namespace crema
