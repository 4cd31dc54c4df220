// The public schemas of Caffe and of its forks (tests/compat/*.tsv) against written files.
#pragma once

#include <string>

#include "proto/net.pb.h"

namespace crema {

// The first field of the message that the dialect's schema lacks, or has under another number; "" if
// there is none, or the dialect's schema is not among the tables.
std::string field_outside(const std::string& dialect, const NetParameter& net);
// The same of a .caffemodel.
std::string field_outside(const std::string& dialect, const std::string& path);

}  // namespace crema
