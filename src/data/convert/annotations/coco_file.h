// CocoFile: what boxes need of COCO's instances_*.json. The file is read once and in passing:
// outlines, which are most of it, are not kept.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace crema {

struct CocoFile {
  struct Picture {
    std::string name;
    double width = 0, height = 0;
  };
  struct Box {
    int64_t picture = 0;   // its id
    int64_t category = 0;  // its id
    double left = 0, top = 0, width = 0, height = 0;
    bool crowd = false;
    std::string where;  // FILE:LINE:COLUMN
  };
  // Error names FILE:LINE:COLUMN.
  explicit CocoFile(const std::string& path);

  std::vector<Picture> pictures;  // in the order of the file
  std::map<int64_t, size_t> ids;  // of pictures
  std::vector<Box> boxes;
  std::map<int64_t, std::string> categories;  // by id
};

}  // namespace crema
