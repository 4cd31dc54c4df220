#include "data/lists/xml.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"

namespace crema {

pugi::xml_document read_xml(const std::string& path) {
  const std::string text = read_text(path);
  pugi::xml_document document;
  const pugi::xml_parse_result result = document.load_buffer(
      text.data(), text.size(), pugi::parse_default | pugi::parse_trim_pcdata, pugi::encoding_utf8);
  if (!result) {
    const std::string before = text.substr(0, static_cast<size_t>(result.offset));
    fail(path, ":", 1 + std::count(before.begin(), before.end(), '\n'), ":",
         before.size() - before.rfind('\n'), ": ", result.description());
  }
  return document;
}

}  // namespace crema
