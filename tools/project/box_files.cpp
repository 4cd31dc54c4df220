#include "tools/project/box_files.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "data/convert/annotations/coco_file.h"
#include "data/lists/image_folder.h"
#include "tools/project/split_folders.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

// The folder itself and those below it, two levels deep.
std::vector<std::string> folders_below(const std::string& folder, int levels = 2) {
  std::vector<std::string> found = {folder};
  if (levels == 0) return found;
  for (const std::string& name : list_folder(folder)) {
    if (is_system_name(name) || !folder_exists(folder + "/" + name)) continue;
    const std::vector<std::string> below = folders_below(folder + "/" + name, levels - 1);
    found.insert(found.end(), below.begin(), below.end());
  }
  return found;
}

std::string stem_of(const std::string& path) { return fs::path(path).stem(); }

bool has_ending(const std::string& folder, const std::string& ending) {
  for (const std::string& name : list_folder(folder)) {
    if (!is_system_name(name) && ends_with(lower_case(name), ending)) return true;
  }
  return false;
}

// The pictures in `folder`, each with the file `boxes`/NAME.ENDING if that exists; paths from `root`.
std::vector<ListedImage> pairs_of(const std::string& root, const std::string& folder,
                                  const std::string& boxes, const std::string& ending) {
  std::vector<ListedImage> images;
  for (const std::string& path : images_below(folder).paths) {
    ListedImage image;
    image.line = static_cast<int64_t>(images.size()) + 1;
    image.path = path.substr(root.size());
    fs::path text = fs::path(boxes) / fs::path(path).lexically_relative(folder);
    text.replace_extension(ending);
    if (file_exists(text)) image.label_path = text.string().substr(root.size());
    images.push_back(std::move(image));
  }
  return images;
}

bool has_boxes(const std::vector<ListedImage>& images) {
  return std::any_of(images.begin(), images.end(),
                     [](const ListedImage& image) { return !image.label_path.empty(); });
}

// The files of boxes in a folder that belong to none of these pictures; paths from `root`.
std::vector<std::string> lone_files(const std::string& root, const std::string& boxes,
                                    const std::string& ending,
                                    const std::vector<ListedImage>& images) {
  std::set<std::string> taken;
  for (const ListedImage& image : images) taken.insert(image.label_path);
  std::vector<std::string> lone;
  for (const std::string& name : list_folder(boxes)) {
    const std::string path = (boxes + "/" + name).substr(root.size());
    // Lists of classes have the ending of YOLO's boxes.
    const bool is_other = is_system_name(name) || name == "classes.txt" || name == "labels.txt";
    if (ends_with(name, ending) && !is_other && taken.count(path) == 0) lone.push_back(path);
  }
  return lone;
}

// Those that a list of ImageSets/Main names.
std::vector<ListedImage> listed(const std::vector<ListedImage>& all, const std::string& list) {
  std::set<std::string> names;
  for (const std::string& line : split(read_text(list), '\n')) {
    const std::string_view word = trim(line);
    names.insert(std::string(word.substr(0, word.find(' '))));
  }
  std::vector<ListedImage> chosen;
  for (const ListedImage& image : all) {
    if (names.count(stem_of(image.path))) chosen.push_back(image);
  }
  return chosen;
}

bool find_voc(const std::string& top, BoxFiles* found) {
  BoxSet all{top + "/", {}, ""};
  std::vector<ListedImage> training, testing;
  for (const std::string& folder : folders_below(top)) {
    const std::string xml = folder_named(folder, {"annotations"});
    const std::string pictures = folder_named(folder, {"jpegimages", "images"});
    const bool apart = !xml.empty() && !pictures.empty() && has_ending(xml, ".xml");
    if (!apart && !has_ending(folder, ".xml")) continue;
    const std::vector<ListedImage> images =
        pairs_of(all.root, apart ? pictures : folder, apart ? xml : folder, ".xml");
    if (!has_boxes(images)) continue;
    all.images.insert(all.images.end(), images.begin(), images.end());
    const std::vector<std::string> lone =
        lone_files(all.root, apart ? xml : folder, ".xml", images);
    found->lone.insert(found->lone.end(), lone.begin(), lone.end());
    const std::string lists = folder + "/ImageSets/Main/";
    for (const char* name : {"train", "trainval"}) {
      const std::string tests = lists + (std::string(name) == "train" ? "val.txt" : "test.txt");
      if (!file_exists(cat(lists, name, ".txt")) || !file_exists(tests)) continue;
      const std::vector<ListedImage> learned = listed(images, cat(lists, name, ".txt")),
                                     tested = listed(images, tests);
      training.insert(training.end(), learned.begin(), learned.end());
      testing.insert(testing.end(), tested.begin(), tested.end());
      break;
    }
  }
  if (all.images.empty()) return false;
  found->format = AnnotationFormat::voc;
  found->form = "Pascal VOC's";
  found->sets = {all};
  if (!training.empty() && !testing.empty())
    found->sets = {{all.root, training, ""}, {all.root, testing, ""}};
  found->classes = voc_classes(all.root, all.images);
  return true;
}

bool is_coco_name(const std::string& name) {
  return (starts_with(name, "instances_") && ends_with(name, ".json")) ||
         ends_with(name, ".coco.json") || name == "annotations.json";
}

// The folder in which a COCO file's pictures are, with a slash.
std::string coco_root(const std::string& top, const std::string& json) {
  const CocoFile file(json);
  require(!file.pictures.empty(), json, ": lists no pictures");
  const std::string& picture = file.pictures[0].name;
  std::vector<std::string> folders = folders_below(top);
  folders.insert(folders.begin(), folder_of(json));
  // A folder that is named as the file, train2017 for instances_train2017.json, comes first.
  std::stable_partition(folders.begin(), folders.end(), [&](const std::string& folder) {
    return stem_of(json).find(fs::path(folder).filename()) != std::string::npos;
  });
  for (const std::string& folder : folders) {
    if (file_exists(folder + "/" + picture)) return folder + "/";
  }
  fail(json, ": names the picture ", picture, ", which is in no folder of ", top);
}

bool find_coco(const std::string& top, BoxFiles* found) {
  std::vector<std::string> files;
  for (const std::string& folder : folders_below(top)) {
    for (const std::string& name : list_folder(folder)) {
      if (!is_system_name(name) && is_coco_name(lower_case(name)))
        files.push_back(folder + "/" + name);
    }
  }
  if (files.empty()) return false;
  // Of several, that for training and the first for testing: by the name of the file or of its folder.
  const auto named = [&](const std::vector<std::string>& words) -> std::string {
    for (const std::string& word : words) {
      for (const std::string& file : files) {
        if (lower_case(file.substr(top.size())).find(word) != std::string::npos) return file;
      }
    }
    return "";
  };
  std::vector<std::string> used = {named({"train"}), named({"val", "test"})};
  if (files.size() == 1 || used[0].empty() || used[1].empty() || used[0] == used[1]) {
    require(files.size() == 1, top, ": has several COCO files, ", join(files, ", "),
            ", whose names do not say which is for training and which for testing (train, val)");
    used = {files[0]};
  }
  found->format = AnnotationFormat::coco;
  found->form = "COCO's";
  for (const std::string& file : used) found->sets.push_back({coco_root(top, file), {}, file});
  found->classes = coco_classes(used[0]);
  return true;
}

// names: [cat, dog], or names: and lines `0: cat` or `- cat`, as the YAML files of YOLO programs have them.
std::vector<std::string> names_in_yaml(const std::string& path) {
  const auto plain = [](std::string_view text) {
    text = trim(text);
    if (text.size() > 1 && (text.front() == '"' || text.front() == '\'') &&
        text.back() == text.front())
      text = text.substr(1, text.size() - 2);
    return std::string(text);
  };
  std::vector<std::string> names;
  bool inside = false;
  std::string list;
  for (const std::string& line : split(read_text(path), '\n')) {
    const std::string text(trim(line.substr(0, line.find(" #"))));
    if (!inside && starts_with(text, "names:")) {
      inside = true;
      list = trim(std::string_view(text).substr(6));
    } else if (inside && starts_with(list, "[") && !ends_with(list, "]")) {
      list += text;
    } else if (inside && list.empty()) {
      const size_t colon = text.find(':');
      if (starts_with(text, "- ")) {
        names.push_back(plain(text.substr(2)));
      } else if (colon != text.npos && !text.empty() && text[0] >= '0' && text[0] <= '9') {
        names.push_back(plain(text.substr(colon + 1)));
      } else if (!text.empty()) {
        break;
      }
    }
  }
  if (starts_with(list, "[") && ends_with(list, "]")) {
    for (const std::string& name : split(list.substr(1, list.size() - 2), ','))
      names.push_back(plain(name));
  }
  return names;
}

std::vector<std::string> yolo_names(const std::string& top) {
  for (const std::string& folder : folders_below(top, 1)) {
    for (const std::string& name : list_folder(folder)) {
      const std::string path = folder + "/" + name;
      std::vector<std::string> names;
      if (is_system_name(name)) continue;
      if (name == "classes.txt" || ends_with(name, ".names")) {
        for (const std::string& line : split(read_text(path), '\n')) {
          if (!trim(line).empty()) names.emplace_back(trim(line));
        }
      } else if (ends_with(name, ".yaml") || ends_with(name, ".yml")) {
        names = names_in_yaml(path);
      }
      if (!names.empty()) return names;
    }
  }
  return {};
}

// As many names as the numbers in the texts ask for.
std::vector<std::string> numbered_names(const std::vector<BoxSet>& sets) {
  int most = -1;
  for (const BoxSet& set : sets) {
    for (const ListedImage& image : set.images) {
      if (image.label_path.empty()) continue;
      for (const std::string& line : split(read_text(set.root + image.label_path), '\n'))
        if (!trim(line).empty()) most = std::max(most, std::atoi(line.c_str()));
    }
  }
  std::vector<std::string> names;
  for (int i = 0; i <= std::min(most, 9999); ++i) names.push_back(cat("class", i));
  return names;
}

bool find_yolo(const std::string& top, BoxFiles* found) {
  // labels/train next to images/train, or train/labels next to train/images, or one of either.
  const std::string pictures = folder_named(top, {"images"}), texts = folder_named(top, {"labels"});
  const bool outside = !pictures.empty() && !texts.empty();
  const SplitFolders parts = split_folders(outside ? pictures : top);
  const auto set_of = [&](const std::string& part) {
    const std::string below = part.empty() ? "" : "/" + part;
    BoxSet set{top + "/", {}, ""};
    const std::string images = outside ? pictures + below : folder_named(top + below, {"images"});
    const std::string labels = outside ? texts + below : folder_named(top + below, {"labels"});
    if (images.empty() || labels.empty()) return set;
    set.images = pairs_of(set.root, images, labels, ".txt");
    const std::vector<std::string> lone = lone_files(set.root, labels, ".txt", set.images);
    found->lone.insert(found->lone.end(), lone.begin(), lone.end());
    return set;
  };
  for (const std::string& part : {parts.training, parts.testing}) {
    if (part.empty() && !found->sets.empty()) continue;
    BoxSet set = set_of(part);
    if (has_boxes(set.images)) found->sets.push_back(std::move(set));
  }
  if (found->sets.empty()) return false;
  found->format = AnnotationFormat::yolo;
  found->form = "YOLO's";
  found->classes = yolo_names(top);
  if (found->classes.empty()) found->classes = numbered_names(found->sets);
  return true;
}

}  // namespace

BoxFiles find_boxes(const std::string& folder, Log&) {
  BoxFiles found;
  if (find_coco(folder, &found) || find_yolo(folder, &found) || find_voc(folder, &found))
    return found;
  return {};
}

}  // namespace crema
