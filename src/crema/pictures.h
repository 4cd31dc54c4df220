// Pictures as a Model's inputs, and its scores as names of classes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "crema.h"
#include "net/class_scores.h"
#include "net/picture_preparation.h"
#include "net/picture_settings.h"

namespace crema {

PictureSettings picture_settings(const PictureOptions& options);

class ModelPictures {
 public:
  // preparation: what the net's file says, with the options applied for data layers; folder: of the file.
  ModelPictures(const NetPreparation& preparation, std::string folder,
                const PictureOptions& options);

  // Sets one sample of an input: the values of all samples, of which the others keep theirs.
  const std::vector<float>& set(Net& net, const std::string& input, int sample,
                                const std::string& file);
  const std::vector<float>& set(Net& net, const std::string& input, int sample,
                                const PictureView& picture);
  const std::vector<float>& set_content(Net& net, const std::string& input, int sample,
                                        std::string_view file);
  Model::PictureReader reader(Net& net, const std::string& input);
  // The samples of this input are other ones now.
  void forget(const std::string& input) { inputs_.erase(input); }

  std::vector<std::string> class_names(int64_t count, Log& log) const;
  std::vector<ClassScore> best(Net& net, int count, int sample, const std::string& blob);

 private:
  struct Input {
    PicturePreparation preparation;
    Shape shape;
    std::vector<float> values;  // all samples
  };
  Input make(Net& net, const std::string& name);
  Input& input_for(Net& net, const std::string& name, int sample);
  // Writes what the record shows as a sample.
  static void write(Record& record, const Input& input, float* sample);
  static const std::vector<float>& write(Record& record, int sample, Input* input);

  NetPreparation preparation_;
  std::string folder_;
  PictureOptions options_;
  std::map<std::string, Input> inputs_;
};

}  // namespace crema
