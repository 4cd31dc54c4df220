// Programs and flags of older and other Caffes.
#pragma once

#include <string>
#include <vector>

#include "tools/flags/flag_reader.h"

namespace crema {

// The verb that does the work of a program of 2013 and 2014, "train_net"; "" for other names. Its
// arguments become flags.
std::string verb_of_old_program(const std::string& program, std::vector<std::string>& arguments,
                                std::vector<FlagUse>& flags);

// The same for a verb of another Caffe, "test_detection"; other verbs are unchanged.
std::string verb_of_other_caffe(const std::string& verb, std::vector<FlagUse>& flags);

// The replacement for a verb of another Caffe, or for a flag that no verb takes; null: unknown.
const char* instead_of_verb(const std::string& verb);
const char* instead_of_flag(const std::string& name);

// Why a flag has no effect here; null: it has.
const char* flag_without_effect(const std::string& name);

}  // namespace crema
