// Fields that say the same in two forms, of which a message may have one: max_iter and max_epoch,
// kernel_size and kernel_h with kernel_w.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

namespace crema {

// Clears fields that contradict `field`, which was just set from outside, and returns their names.
// A value that means "off" (0, false, an empty text) clears nothing. If one number for both sides
// is replaced by that of one side, the other side keeps it.
std::vector<std::string> clear_alternatives(google::protobuf::Message* message,
                                            const google::protobuf::FieldDescriptor* field);

}  // namespace crema
