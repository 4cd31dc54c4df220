// The data layers of FCN: voc_layers.VOCSegDataLayer and SBDDSegDataLayer,
// nyud_layers.NYUDSegDataLayer, siftflow_layers.SIFTFlowSegDataLayer and
// pascalcontext_layers.PASCALContextSegDataLayer. Each pass has one whole image and its label maps.
//
//   data  = image - mean
//   label = the class of each pixel, 255 for none
//
// Shapes: no bottoms; tops (1, 3, H, W) for an image, (1, 1, H, W) for a label map or a depth map,
// where H and W change from image to image. All but SIFTFlow's and NYUD's have data and label;
// SIFTFlow has data, semantic and geometric labels; NYUD has those that `tops` lists: color, depth,
// hha, label.
//
// Parameters, in param_str: the folder of the data set, voc_dir, sbdd_dir, nyud_dir, siftflow_dir,
// or voc_dir and context_dir; split, the name of the list of images; mean, of VOC and SBDD; tops,
// of NYUD; randomize (True): a new order in every epoch, for splits with `train` in their name;
// seed, of that order, instead of the solver's.
//
// Every image comes once per epoch; the originals draw each at random, so some come twice.
//
// Gradient: none.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "layers/python/fcn_data_layer.h"
#include "layers/python/native.h"

namespace crema {
namespace {

using Kind = NamedFile::Kind;

// A number of a file as NumPy makes a byte of it.
uint8_t byte_of(double number) {
  return std::isnan(number)
             ? 0
             : static_cast<uint8_t>(static_cast<int64_t>(std::clamp(number, -1e9, 1e9)));
}
// Classes from 1 on become classes from 0 on, and 0, for none, becomes 255.
float one_less(double number) { return static_cast<uint8_t>(byte_of(number) - 1); }

class VocSegDataLayer : public FcnDataLayer {
 public:
  Arity tops() const override { return {2, 2}; }

 protected:
  std::string list(const ParamStr& params) const override {
    return cat(find(params, "voc_dir"), "/ImageSets/Segmentation/", params.needed_word("split"),
               ".txt");
  }
  std::vector<NamedFile> files(const ParamStr& params) const override {
    const std::string root = find(params, "voc_dir");
    return {{Kind::bgr, root + "/JPEGImages/", ".jpg", mean(params), ""},
            {Kind::png_labels, root + "/SegmentationClass/", ".png", {}, ""}};
  }
};

class SbddSegDataLayer : public FcnDataLayer {
 public:
  Arity tops() const override { return {2, 2}; }

 protected:
  std::string list(const ParamStr& params) const override {
    return cat(find(params, "sbdd_dir"), "/", params.needed_word("split"), ".txt");
  }
  std::vector<NamedFile> files(const ParamStr& params) const override {
    const std::string root = find(params, "sbdd_dir");
    return {{Kind::bgr, root + "/img/", ".jpg", mean(params), ""},
            {Kind::mat_labels, root + "/cls/", ".mat", {}, "GTcls.Segmentation", byte_of}};
  }
};

class NyudSegDataLayer : public FcnDataLayer {
 public:
  Arity tops() const override { return {1, -1}; }

 protected:
  std::pair<int64_t, int64_t> usual_size() const override { return {425, 560}; }
  std::string list(const ParamStr& params) const override {
    return cat(find(params, "nyud_dir"), "/", params.needed_word("split"), ".txt");
  }
  std::vector<NamedFile> files(const ParamStr& params) const override {
    const std::string root = find(params, "nyud_dir");
    const std::map<std::string, NamedFile> known = {
        {"color",
         {Kind::bgr, root + "/data/images/img_", ".png", {116.190f, 97.203f, 92.318f}, ""}},
        {"hha", {Kind::rgb, root + "/data/hha/img_", ".png", {132.431f, 94.076f, 118.477f}, ""}},
        {"depth", {Kind::log_depth, root + "/data/depth/img_", ".png", {7.844f}, ""}},
        {"label",
         {Kind::mat_labels, root + "/segmentation/img_", ".mat", {}, "segmentation", one_less}}};
    std::vector<NamedFile> files;
    for (const std::string& top : params.words("tops", {})) {
      const auto found = known.find(top);
      require(found != known.end(), "tops has \"", top,
              "\"; there are color, depth, hha and label");
      files.push_back(found->second);
    }
    require(!files.empty(), "param_str needs `tops`, a list of color, depth, hha and label");
    return files;
  }
};

class SiftFlowSegDataLayer : public FcnDataLayer {
 public:
  Arity tops() const override { return {3, 3}; }

 protected:
  std::pair<int64_t, int64_t> usual_size() const override { return {256, 256}; }
  std::string list(const ParamStr& params) const override {
    return cat(find(params, "siftflow_dir"), "/", params.needed_word("split"), ".txt");
  }
  std::vector<NamedFile> files(const ParamStr& params) const override {
    const std::string root = find(params, "siftflow_dir"),
                      set = "/spatial_envelope_256x256_static_8outdoorcategories/";
    // Here -1 also means none.
    const auto geometric = [](double number) { return one_less(number == -1 ? 0 : number); };
    return {{Kind::bgr, root + "/Images" + set, ".jpg", {114.578f, 115.294f, 108.353f}, ""},
            {Kind::mat_labels, root + "/SemanticLabels" + set, ".mat", {}, "S", one_less},
            {Kind::mat_labels, root + "/GeoLabels" + set, ".mat", {}, "S", geometric}};
  }
};

class PascalContextSegDataLayer : public FcnDataLayer {
 public:
  Arity tops() const override { return {2, 2}; }

 protected:
  std::string list(const ParamStr& params) const override {
    return cat(find(params, "voc_dir"), "/VOC2010/ImageSets/Main/", params.needed_word("split"),
               ".txt");
  }
  std::vector<NamedFile> files(const ParamStr& params) const override {
    const std::string root = find(params, "voc_dir") + "/VOC2010",
                      context = find(params, "context_dir");
    return {
        {Kind::bgr, root + "/JPEGImages/", ".jpg", {104.007f, 116.669f, 122.679f}, ""},
        {Kind::mat_labels, context + "/trainval/", ".mat", {}, "LabelMap", classes_of(context)}};
  }

 private:
  // The names of a list's lines, `number:name`, without blanks; `path` says which list.
  static std::vector<std::string> read_names(const std::string& path) {
    std::vector<std::string> names;
    std::string text = read_text(path), name;
    bool behind_colon = false;
    for (const char c : text + "\n") {
      if (c == '\n' && behind_colon) names.push_back(name);
      if (c == '\n')
        name.clear(), behind_colon = false;
      else if (c == ':')
        behind_colon = true;
      else if (behind_colon && c != ' ' && c != '\r')
        name += c;
    }
    require(!names.empty(), path, ": has no line like `1: sky`");
    return names;
  }

  // Maps a number of the full list to one of the 59 classes; 0 for any other.
  static std::function<float(double)> classes_of(const std::string& context) {
    static const std::map<std::string, std::string> other_names = {
        {"diningtable", "table"}, {"bedcloth", "bedclothes"}, {"clothes", "cloth"}};
    const std::string all_list = context + "/labels.txt", task_list = context + "/59_labels.txt";
    const std::vector<std::string> all = read_names(all_list), task = read_names(task_list);
    std::vector<float> class_of(all.size() + 1, 0);
    for (size_t i = 0; i < task.size(); ++i) {
      const auto other = other_names.find(task[i]);
      const std::string& name = other == other_names.end() ? task[i] : other->second;
      const auto found = std::find(all.begin(), all.end(), name);
      require(found != all.end(), task_list, ": ", all_list, " has no class \"", name, "\"");
      class_of[static_cast<size_t>(found - all.begin()) + 1] = static_cast<float>(i + 1);
    }
    return [class_of](double number) {
      return number >= 0 && number < static_cast<double>(class_of.size())
                 ? class_of[static_cast<size_t>(number)]
                 : 0;
    };
  }
};

REGISTER_PYTHON(VocSegDataLayer, "voc_layers", "VOCSegDataLayer");
REGISTER_PYTHON(SbddSegDataLayer, "voc_layers", "SBDDSegDataLayer");
REGISTER_PYTHON(NyudSegDataLayer, "nyud_layers", "NYUDSegDataLayer");
REGISTER_PYTHON(SiftFlowSegDataLayer, "siftflow_layers", "SIFTFlowSegDataLayer");
REGISTER_PYTHON(PascalContextSegDataLayer, "pascalcontext_layers", "PASCALContextSegDataLayer");

}  // namespace
}  // namespace crema
