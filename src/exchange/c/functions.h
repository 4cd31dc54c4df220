// The C functions that written nets call. Each file of exchange/c/functions has one, or some that
// belong together, and opens with a comment; "needs:" in it lists other files.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "exchange/c/program.h"

namespace crema {

// The texts by the name of the file, without ".c".
const std::map<std::string, std::string>& c_function_texts();

// What those files define: functions, macros, structures and their words, which blobs must not hide.
const std::set<std::string>& c_function_names();

// The text of all functions that the programs call, each after what it needs.
std::string c_functions(const std::vector<const CProgram*>& programs);

}  // namespace crema
