// Fields that say the same in two forms, of which a message may have one: max_iter and max_epoch,
// kernel_size and kernel_h with kernel_w.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

namespace crema {

// Clears what contradicts `field`, which was just set from outside, and returns the names of what
// it cleared. A value that says "not so" (0, false, an empty text) clears nothing. Where one number
// for both sides is replaced by that of one side, the other side keeps it.
std::vector<std::string> clear_alternatives(google::protobuf::Message* message,
                                            const google::protobuf::FieldDescriptor* field);

}  // namespace crema
