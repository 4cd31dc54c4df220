// The files behind a net's data layers, and the names of classes that belong to them.
#pragma once

#include <string>

#include "data/databases/class_names.h"
#include "proto/net.pb.h"

namespace crema {

// The path in `source` of a data layer, as found from the working directory and from `folder`, that
// of the net's file. "" if it has none.
std::string source_of(const LayerParameter& layer, const std::string& folder);
// As the file has it.
std::string named_source(const LayerParameter& layer);
// Sets it in a layer that has one.
void set_source(const std::string& path, LayerParameter* layer);

// The file with the class names of the first data layer whose source has one; "": none has.
std::string class_names_file_of(const NetParameter& net, const std::string& folder);
ClassNames class_names_of(const NetParameter& net, const std::string& folder);

}  // namespace crema
