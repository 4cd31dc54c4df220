// `crema db copy|shuffle|merge|split FROM ... TO`: databases from the records of others.
#include "data/convert/db_copy.h"

#include "base/error.h"
#include "data/databases/find_database.h"
#include "tools/db/db.h"
#include "tools/flags/convert_flags.h"

namespace crema {
namespace {

int write_database(const VerbCall& call, const DbSplitFlags& flags, bool shuffle) {
  std::vector<std::shared_ptr<const Source>> from;
  const size_t count = call.arguments.size() - 1;
  std::string backend = lower_case(flags.backend);
  for (size_t i = 0; i < count; ++i) {
    FoundDatabase database = find_database(call.arguments[i]);
    // Without -backend the kind does not change; tar files are only read.
    if (i == 0 && database.backend != DataParameter::TAR && !flags.backend_given)
      backend = name_of(database.backend);
    from.push_back(std::move(database.source));
  }
  copy_records(from, call.arguments[count], shuffle, convert_options(call, flags, backend),
               call.log);
  return 0;
}

}  // namespace

int run_db_copy(const VerbCall& call, const DbCopyFlags& flags) {
  return write_database(call, DbSplitFlags::without<"split", "seed">(flags), false);
}

int run_db_merge(const VerbCall& call, const DbCopyFlags& flags) {
  return write_database(call, DbSplitFlags::without<"split", "seed">(flags), false);
}

int run_db_shuffle(const VerbCall& call, const DbShuffleFlags& flags) {
  return write_database(call, DbSplitFlags::without<"split">(flags), true);
}

int run_db_split(const VerbCall& call, const DbSplitFlags& flags) {
  require(!flags.split.empty(),
          "-split is missing: the fraction for training, such as 0.9, or its number of records");
  return write_database(call, flags, false);
}

}  // namespace crema
