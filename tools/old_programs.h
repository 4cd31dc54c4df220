// Programs and flags of older and other Caffes.
#pragma once

#include <string>
#include <vector>

#include "tools/flag_reader.h"

namespace crema {

// The verb that does the work of a program of 2013 and 2014, "train_net"; "" for other names. Its
// arguments become flags.
std::string verb_of_old_program(const std::string& program, std::vector<std::string>& arguments,
                                std::vector<FlagUse>& flags);

// Why a flag has no effect here; null: it has.
const char* flag_without_effect(const std::string& name);

}  // namespace crema
