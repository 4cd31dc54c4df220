#include "net/sources/assumed_shapes.h"

#include <charconv>

#include "base/error.h"

namespace crema {

namespace {

Shape parse_shape(const std::string& text, const std::string& what) {
  Shape shape;
  for (const std::string& part : split(text, 'x')) {
    int64_t extent = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), extent);
    require(error == std::errc() && end == part.data() + part.size() && extent > 0, what, ": \"",
            text,
            "\" is not a shape; expected positive numbers with x between them, such as "
            "64x3x224x224");
    shape.push_back(extent);
  }
  return shape;
}

}  // namespace

AssumedShapes parse_assumed_shapes(const std::string& text, const std::string& what) {
  AssumedShapes assumed;
  for (const std::string& part : split(text, ',')) {
    const size_t equal = part.find('=');
    if (part == "default") {
      assumed.defaults = true;
    } else {
      require(equal != std::string::npos && equal > 0, what, ": \"", part,
              "\" is neither TOP=SHAPE (such as data=64x3x224x224) nor default");
      assumed.of_top[part.substr(0, equal)] = parse_shape(part.substr(equal + 1), what);
    }
  }
  return assumed;
}

}  // namespace crema
