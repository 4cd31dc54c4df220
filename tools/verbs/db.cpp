// `crema db ACTION ...`: looks into databases and makes databases of others.
#include "tools/db/db.h"

#include <algorithm>
#include <iostream>
#include <map>

#include "base/error.h"
#include "device/host_limits.h"

namespace crema {

int threads_for(int flag) { return flag > 0 ? flag : usable_processors(); }

namespace {

const std::map<std::string, DbAction>& db_actions() {
  constexpr size_t kAny = 1000;
  static const std::map<std::string, DbAction> actions = {
      {"stat",
       {"shows what is in a database: kind, shapes, classes, order", "[-channel_mean] DB", 1, 1,
        run_db_stat}},
      {"verify",
       {"reads and decodes every record, and looks for repeated ones", "[-strict] DB", 1, 1,
        run_db_verify}},
      {"copy",
       {"copies a database to another kind", "[-backend lmdb|leveldb|hdf5] FROM TO", 2, 2,
        run_db_copy}},
      {"shuffle", {"copies a database in random order", "[-seed N] FROM TO", 2, 2, run_db_shuffle}},
      {"merge", {"makes one database of several", "FROM FROM ... TO", 3, kAny, run_db_merge}},
      {"split",
       {"makes TO_train and TO_val, stratified by class", "-split 0.9 [-seed N] FROM TO", 2, 2,
        run_db_split}},
      {"peek",
       {"draws records, or a batch as a net will see it", "[-model NET.prototxt] [DB]", 0, 1,
        run_db_peek}},
  };
  return actions;
}

std::vector<std::string> names_of_actions() {
  std::vector<std::string> names;
  for (const auto& [name, action] : db_actions()) names.push_back(name);
  return names;
}

int list_actions() {
  std::string text = "usage: crema db ACTION ...\n\n";
  for (const auto& [name, action] : db_actions())
    text += cat("  ", name, " ", action.usage, "\n      ", action.summary, "\n");
  std::cout << text << "\n`crema help db` explains the flags.\n";
  return 1;
}

int run_db(const VerbCall& call, const DbFlags&) {
  if (call.arguments.empty()) return list_actions();
  const std::string& name = call.arguments[0];
  const auto found = db_actions().find(name);
  require(found != db_actions().end(), "`crema db` has no action \"", name, "\"",
          did_you_mean(name, names_of_actions()), "; the actions are ",
          join(names_of_actions(), ", "));
  const DbAction& action = found->second;
  const std::vector<std::string> all = DbFlags::list(), &flags = action.run.flags();
  for (const std::string& flag : call.given) {
    if (!std::count(all.begin(), all.end(), flag)) continue;  // of every verb
    require(std::count(flags.begin(), flags.end(), flag) > 0, "`crema db ", name, "` has no flag -",
            flag, "; it takes -", join(flags, ", -"));
  }
  VerbCall rest{
      {call.arguments.begin() + 1, call.arguments.end()}, call.log, call.given, call.flags};
  const size_t count = rest.arguments.size();
  if (count < action.min_arguments || count > action.max_arguments) {
    fail(count < action.min_arguments
             ? cat("too few arguments (", count, ")")
             : cat("unexpected argument: \"", rest.arguments[action.max_arguments], "\""),
         "; usage: crema db ", name, " ", action.usage);
  }
  return action.run(rest);
}

REGISTER_VERB(
    db,
    {.summary = "looks into databases, copies, shuffles, merges and splits them",
     .usage = "stat|verify|peek [flags] DB, or copy|shuffle|merge|split [flags] "
              "FROM ... TO",
     .example = "crema db stat digits_lmdb\ncrema db peek -output digits.png digits_lmdb\ncrema db "
                "split -split 0.9 mixed_lmdb mixed_lmdb",
     .meanings =
         {{"backend",
           "The kind of database to write: lmdb, leveldb or hdf5. Empty: the kind that is read."},
          {"batch",
           "peek: how many records to draw, or with -model how many the net reads. 0: 32, or what "
           "the net says."},
          {"model", "peek: the net whose first data layer makes the batch to draw."},
          {"output", "peek: the picture to write. Empty: peek.png."},
          {"strict", "verify: repeated records are an error, not a warning."},
          {"seed", "The seed of shuffle and split: the same one gives the same order."},
          {"split",
           "split: the fraction for the first database, such as 0.9, or the number of records, "
           "such as 45000."},
          {"channel_mean",
           "stat: also the mean and the standard deviation of each channel, for which all images "
           "are decoded."},
          {"labels",
           "peek: the class names, a text file with one per line. Empty: labels.txt in the "
           "database if there is one, else numbers."},
          {"rgb", "peek: the channels of the records are R, G, B; otherwise B, G, R."},
          {"threads", "stat and verify: threads that decode images; 0: one for each processor."}},
     .max_arguments = 1000,
     .run = run_db});

}  // namespace
}  // namespace crema
