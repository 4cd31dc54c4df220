#include "data/convert/annotations/coco_file.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/visible.h"
#include "data/images/pixel_limits.h"

namespace crema {
namespace {

using CocoJson = nlohmann::json;

// Tells how far the parser has read, which it does not.
struct Cursor {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at = nullptr;
  const char** read = nullptr;

  reference operator*() const { return *at; }
  Cursor& operator++() {
    *read = ++at;
    return *this;
  }
  bool operator==(const Cursor& other) const { return at == other.at; }
};

// Files and their parts, by the depth at which the parser tells of them.
constexpr int kSection = 1, kElement = 2, kField = 3;

class CocoReader {
 public:
  CocoReader(const std::string& path, CocoFile& file)
      : path_(path), text_(read_text(path)), file_(file) {
    read_ = text_.data();
    line_start_ = counted_ = text_.data();
  }

  void read() {
    const char* const end = text_.data() + text_.size();
    try {
      const CocoJson rest =
          CocoJson::parse(Cursor{text_.data(), &read_}, Cursor{end, &read_},
                          [this](int depth, CocoJson::parse_event_t event, CocoJson& value) {
                            return keep(depth, event, value);
                          });
    } catch (const CocoJson::exception&) {
      fail(place(std::min(read_, end) - 1), ": the file is not JSON here");
    }
    require(!file_.pictures.empty(), path_,
            ": lists no \"images\"; is it COCO's instances_*.json?");
    require(!file_.categories.empty(), path_,
            ": lists no \"categories\"; is it COCO's instances_*.json?");
  }

 private:
  // Whether the parser keeps values: the fields of an element until its end.
  bool keep(int depth, CocoJson::parse_event_t event, CocoJson& value) {
    using Event = CocoJson::parse_event_t;
    if (event == Event::key && depth == kSection) {
      section_ = value.get<std::string>();
      wanted_ = section_ == "images" || section_ == "annotations" || section_ == "categories";
      return wanted_;
    }
    if (depth >= kSection && !wanted_) return false;  // the parser also reports skipped values
    if (event == Event::key && depth == kElement)
      fail(place(read_ - 1), ": \"", section_, "\" is not a list; is it COCO's instances_*.json?");
    if (event == Event::key && depth == kField) {
      static const std::set<std::string> fields = {"id",     "file_name", "width",
                                                   "height", "image_id",  "category_id",
                                                   "bbox",   "iscrowd",   "name"};
      return fields.count(value.get<std::string>()) > 0;
    }
    if (event == Event::object_start && depth == kElement) where_ = place(read_ - 1);
    if (event == Event::object_end && depth == kElement) {
      take(value);
      return false;
    }
    return true;
  }

  void take(const CocoJson& value) {
    if (section_ == "images") {
      CocoFile::Picture picture{text(value, "file_name"), number(value, "width"),
                                number(value, "height")};
      if (!(picture.width > 0 && picture.height > 0))
        fail(where_, ": the image is ", picture.width, "x", picture.height,
             "; width and height must be above 0");
      const int64_t id = integer(value, "id");
      if (!file_.ids.emplace(id, file_.pictures.size()).second)
        fail(where_, ": two images have the id ", id);
      file_.pictures.push_back(std::move(picture));
    } else if (section_ == "categories") {
      const int64_t id = integer(value, "id");
      if (!file_.categories.emplace(id, text(value, "name")).second)
        fail(where_, ": two categories have the id ", id);
    } else {
      take_box(value);
    }
  }

  void take_box(const CocoJson& value) {
    CocoFile::Box box;
    box.picture = integer(value, "image_id");
    box.category = integer(value, "category_id");
    const auto corners = value.find("bbox");
    const bool four = corners != value.end() && corners->is_array() && corners->size() == 4 &&
                      std::all_of(corners->begin(), corners->end(),
                                  [](const CocoJson& one) { return one.is_number(); });
    if (!four) fail(where_, ": the annotation needs \"bbox\": [left, top, width, height]");
    double* const sides[] = {&box.left, &box.top, &box.width, &box.height};
    for (size_t i = 0; i < 4; ++i) {
      *sides[i] = (*corners)[i].get<double>();
      if (!is_pixel(*sides[i]))
        fail(where_, ": \"bbox\" has ", *sides[i], ", farther out than any image reaches");
    }
    const auto crowd = value.find("iscrowd");
    box.crowd = crowd != value.end() && (*crowd == 1 || *crowd == true);
    box.where = where_;
    file_.boxes.push_back(std::move(box));
  }

  int64_t integer(const CocoJson& value, const char* key) const {
    const auto found = value.find(key);
    if (found == value.end() || !found->is_number_integer())
      fail(where_, ": an element of \"", section_, "\" needs an integer as \"", key, "\"");
    return found->get<int64_t>();
  }
  double number(const CocoJson& value, const char* key) const {
    const auto found = value.find(key);
    if (found == value.end() || !found->is_number())
      fail(where_, ": an element of \"", section_, "\" needs a number as \"", key, "\"");
    return found->get<double>();
  }
  std::string text(const CocoJson& value, const char* key) const {
    const auto found = value.find(key);
    if (found == value.end() || !found->is_string() || found->get<std::string>().empty())
      fail(where_, ": an element of \"", section_, "\" needs a text as \"", key, "\"");
    return found->get<std::string>();
  }

  // FILE:LINE:COLUMN; places come in the order of the file.
  std::string place(const char* at) {
    for (; counted_ < at; ++counted_) {
      if (*counted_ != '\n') continue;
      ++line_;
      line_start_ = counted_ + 1;
    }
    return cat(path_, ":", line_, ":", at - line_start_ + 1);
  }

  std::string path_, text_;
  CocoFile& file_;
  const char* read_ = nullptr;
  const char *line_start_ = nullptr, *counted_ = nullptr;
  int64_t line_ = 1;
  std::string section_, where_;
  bool wanted_ = false;
};

}  // namespace

CocoFile::CocoFile(const std::string& path) { CocoReader(path, *this).read(); }

}  // namespace crema
