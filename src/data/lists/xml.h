// Reads the XML of annotation files.
#pragma once

#include <pugixml.hpp>
#include <string>

namespace crema {

// Texts are without surrounding blanks. Error names PATH:LINE:COLUMN.
pugi::xml_document read_xml(const std::string& path);

}  // namespace crema
