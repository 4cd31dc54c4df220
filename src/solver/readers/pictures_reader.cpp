#include "solver/readers/pictures_reader.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/files.h"
#include "base/png.h"
#include "base/strings.h"
#include "base/visible.h"

namespace crema {
namespace {

std::string json_of(const event::Pictures& shown) {
  nlohmann::json pictures = nlohmann::json::array();
  for (const Picture& picture : shown.pictures)
    pictures.push_back({{"src", picture_address(picture)}, {"caption", visible(picture.caption)}});
  const nlohmann::json object = {
      {"iteration", shown.iteration}, {"title", visible(shown.title)}, {"pictures", pictures}};
  return object.dump() + "\n";
}

}  // namespace

void PicturesReader::read(const Event& event) {
  const auto* shown = std::get_if<event::Pictures>(&event);
  if (!shown) return;
  try {
    std::filesystem::create_directories(folder_);
    write_file_atomically(cat(folder_, "/", shown->tag, ".json"), json_of(*shown));
    if (std::exchange(broken_, false)) warnings_.works_again(folder_, "");
  } catch (const std::exception& error) {
    broken_ = true;
    warnings_.failed(cat("pictures of this training: ", error.what()));
  }
}

}  // namespace crema
