// libcrema has all types of layers; src/infer/infer.cmake makes this function for libcrema_infer.
#include "layers/absent.h"

namespace crema {

bool is_absent_type(const std::string&) { return false; }

}  // namespace crema
