// The actions of `crema db`, a file each: tools/db_ACTION.cpp.
#pragma once

#include <string>
#include <vector>

#include "tools/verb.h"

namespace crema {

struct DbAction {
  const char* summary = "";
  const char* usage = "";
  std::vector<std::string> flags{};  // out of those of the verb
  size_t min_arguments = 0, max_arguments = 0;
  // `arguments` are those after the action.
  int (*run)(const VerbCall& call) = nullptr;
};

int run_db_stat(const VerbCall& call);
int run_db_verify(const VerbCall& call);
int run_db_copy(const VerbCall& call);
int run_db_shuffle(const VerbCall& call);
int run_db_merge(const VerbCall& call);
int run_db_split(const VerbCall& call);
int run_db_peek(const VerbCall& call);

// -threads, or one for each processor.
int threads_of_flag();

}  // namespace crema
