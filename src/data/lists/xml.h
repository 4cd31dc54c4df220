// The part of XML that annotation files use: elements with text and elements inside. Attributes,
// comments and declarations are skipped.
#pragma once

#include <string>
#include <vector>

namespace crema {

struct XmlElement {
  std::string name, text;  // without blanks around it
  std::vector<XmlElement> children;

  // The first child of this name; null when there is none.
  const XmlElement* child(const std::string& wanted) const;
  // Its text, or `otherwise`.
  std::string text_of(const std::string& wanted, const std::string& otherwise = "") const;
};

// The outermost element of a file. Error names PATH:LINE.
XmlElement read_xml(const std::string& path);

}  // namespace crema
