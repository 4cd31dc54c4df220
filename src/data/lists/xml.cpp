#include "data/lists/xml.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"

namespace crema {
namespace {

class Parser {
 public:
  explicit Parser(const std::string& path) : path_(path), text_(read_text(path)) {}

  XmlElement document() {
    skip_to_tag(nullptr);
    return element(0);
  }

 private:
  static constexpr int kDeepest = 100;

  [[noreturn]] void wrong(const std::string& problem) const {
    fail(path_, ":", 1 + std::count(text_.begin(), text_.begin() + static_cast<int64_t>(at_), '\n'),
         ": ", problem);
  }
  bool here(std::string_view what) const { return text_.compare(at_, what.size(), what) == 0; }
  void skip_past(std::string_view end) {
    const size_t found = text_.find(end, at_);
    if (found == std::string::npos) wrong(cat("`", end, "` is missing; the file ends too early"));
    at_ = found + end.size();
  }

  // To the next < that opens or closes an element; what lies before it is text.
  void skip_to_tag(std::string* into) {
    while (true) {
      const size_t tag = text_.find('<', at_);
      if (tag == std::string::npos) wrong("the file ends where a <tag> was expected");
      if (into) into->append(text_, at_, tag - at_);
      at_ = tag;
      if (here("<!--")) {
        skip_past("-->");
      } else if (here("<?")) {
        skip_past("?>");
      } else if (here("<!")) {
        skip_past(">");
      } else {
        return;
      }
    }
  }

  XmlElement element(int depth) {
    if (depth > kDeepest || here("</")) wrong("an element was expected: <name>...</name>");
    const size_t begin = ++at_;
    skip_past(">");
    std::string_view tag = std::string_view(text_).substr(begin, at_ - 1 - begin);
    const bool empty = !tag.empty() && tag.back() == '/';
    XmlElement found;
    found.name = tag.substr(0, tag.find_first_of(" \t\r\n/"));
    if (found.name.empty()) wrong("a tag without a name");
    if (empty) return found;
    while (true) {
      skip_to_tag(&found.text);
      if (here("</")) break;
      found.children.push_back(element(depth + 1));
    }
    const std::string end = cat("</", found.name);
    if (!here(end)) wrong(cat("`", end, ">` was expected"));
    skip_past(">");
    found.text = std::string(trim(found.text));
    return found;
  }

  const std::string& path_;
  const std::string text_;
  size_t at_ = 0;
};

}  // namespace

const XmlElement* XmlElement::child(const std::string& wanted) const {
  for (const XmlElement& element : children) {
    if (element.name == wanted) return &element;
  }
  return nullptr;
}

std::string XmlElement::text_of(const std::string& wanted, const std::string& otherwise) const {
  const XmlElement* const found = child(wanted);
  return found ? found->text : otherwise;
}

XmlElement read_xml(const std::string& path) { return Parser(path).document(); }

}  // namespace crema
