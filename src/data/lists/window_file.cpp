#include "data/lists/window_file.h"

#include "data/lists/word_reader.h"

namespace crema {
namespace {

ListedWindow read_window(WordReader& reader, const ListedWindowImage& image, float& overlap) {
  ListedWindow window;
  window.label = reader.label("the class of a window");
  window.line = reader.line();
  overlap = reader.number<float>("the overlap of a window");
  for (int64_t* side : {&window.x1, &window.y1, &window.x2, &window.y2})
    *side = reader.corner<int64_t>("a corner of a window");
  if (window.x1 > window.x2 || window.y1 > window.y2 || window.x2 < 0 || window.y2 < 0 ||
      window.x1 >= image.width || window.y1 >= image.height) {
    reader.wrong(cat("the window from (", window.x1, ", ", window.y1, ") to (", window.x2, ", ",
                     window.y2, ") is empty or lies outside its image of ", image.width,
                     " columns and ", image.height,
                     " rows; a window is `class overlap x1 y1 x2 y2`"));
  }
  return window;
}

std::vector<std::string> read_masks(WordReader& reader, const ListedWindowImage* first) {
  const auto count = reader.number<int64_t>("the number of masks");
  if (count <= 0) {
    reader.wrong(cat("the image has ", count,
                     " masks, but at least one is needed; the path of an image is followed by "
                     "the number of its masks and their paths"));
  }
  if (first && static_cast<int64_t>(first->masks.size()) != count) {
    reader.wrong(cat("the image has ", count, " masks, but that of line ", first->line, " has ",
                     first->masks.size()));
  }
  std::vector<std::string> masks;
  for (int64_t i = 0; i < count; ++i) masks.emplace_back(reader.word("the path of a mask"));
  return masks;
}

}  // namespace

WindowFile read_window_file(const std::string& path, const WindowRules& rules) {
  WindowFile file;
  WordReader reader(path);
  while (!reader.at_end()) {
    std::string_view mark = reader.word("an image");
    if (mark.empty() || mark.front() != '#')
      reader.wrong(cat("found `", mark, "` where an image, `# index`, was expected"));
    if (mark.size() == 1) reader.number<int64_t>("the index of an image");
    ListedWindowImage image;
    image.path = reader.rest_of_line("the path of an image");
    image.line = reader.line();
    if (rules.masks)
      image.masks = read_masks(reader, file.images.empty() ? nullptr : &file.images[0]);
    image.channels = reader.number<int64_t>("the number of channels");
    if (image.channels != 1 && image.channels != 3)
      reader.wrong(cat("the image has ", image.channels, " channels; 1 and 3 can be read"));
    if (!file.images.empty() && image.channels != file.images[0].channels) {
      reader.wrong(cat("the image has ", image.channels, " channels, but that of line ",
                       file.images[0].line, " has ", file.images[0].channels));
    }
    image.height = reader.number<int64_t>("the height of an image");
    image.width = reader.number<int64_t>("the width of an image");
    const auto windows = reader.number<int64_t>("the number of windows");
    for (int64_t i = 0; i < windows; ++i) {
      float overlap = 0;
      ListedWindow window = read_window(reader, image, overlap);
      window.image = static_cast<int64_t>(file.images.size());
      const bool object = overlap >= rules.object_overlap,
                 background = !object && overlap < rules.background_overlap;
      if (object && window.label <= 0) {
        reader.wrong(cat("a window with the overlap ", overlap,
                         " shows an object, whose class must be above 0, not ", window.label));
      }
      if (background) window.label = 0;
      if (rules.in_order) {
        file.in_order.push_back(window);
      } else if (object) {
        file.objects.push_back(window);
      } else if (background) {
        file.background.push_back(window);
      }
    }
    file.images.push_back(std::move(image));
  }
  require(!file.images.empty(), path, ": names no image");
  return file;
}

}  // namespace crema
