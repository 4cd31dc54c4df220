// What messages call the fields of ModelOptions: as the C++ API has them, unless a program whose users
// write flags, or the C API, says otherwise.
#pragma once

namespace crema {

struct SettingNames {
  const char* assume;
  const char *assume_begin, *assume_end;  // around the shapes that a message proposes
  const char* pictures;                   // precedes resize, mean, scale and labels
  const char *resize, *labels;
  const char* reshape;  // what gives inputs another shape
};

// For the whole process; chosen before it opens nets.
enum class SettingStyle { cxx, c, flags };
void name_settings(SettingStyle style);
const SettingNames& setting_names();

}  // namespace crema
