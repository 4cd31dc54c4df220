// gflags parses the flags and describes them for -help; verbs get them as FlagsOf.
#include <gflags/gflags.h>

// Of lists gflags could keep the last value only: tools/flags/command_line collects them.
#define DEFINE_list(name, value, help) DEFINE_string(name, "", help)
#define FLAG(type, name, value, help) DEFINE_##type(name, value, help);
#include "tools/flags/flags.def"
#undef FLAG
#undef DEFINE_list
