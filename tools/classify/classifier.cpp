#include "tools/classify/classifier.h"

#include <algorithm>

namespace crema {

Classifier::Classifier(Net& net, const std::string& input, const ScoreBlob& scores,
                       ClassReport& report, Log& log)
    : net_(net), input_(input), scores_(scores), report_(report), log_(log) {
  std::vector<int64_t> dims = net.input(input).shape().dims();
  batch_ = dims[0];
  dims.erase(dims.begin());
  sample_ = Shape(dims);
  values_.resize(static_cast<size_t>(batch_ * sample_.count()));
}

void Classifier::run(const ImageSource& source, const PicturePreparation& preparation) {
  const std::unique_ptr<Dataset> dataset = dataset_of(source, preparation);
  const int64_t size = source.size();
  for (int64_t first = 0; first < size; first += batch_) {
    const std::vector<LoadedImage> images =
        load_images(source, *dataset, sample_, first, std::min(batch_, size - first), &values_);
    net_.set_input(input_, values_.data());
    net_.forward(passes_++);
    net_.check();
    report(images, to_floats(net_.context(), net_.blob(scores_.name)));
  }
}

std::string Classifier::problem_of(const LoadedImage& image) const {
  if (!image.error.empty()) return image.error;
  const bool judged = image.label && scores_.classes > 1;
  if (!judged || (*image.label >= 0 && *image.label < scores_.classes)) return "";
  return cat(image.name, ": the label ", *image.label, " is not a class; classes go from 0 to ",
             scores_.classes - 1);
}

void Classifier::report(const std::vector<LoadedImage>& images, const std::vector<float>& scores) {
  for (size_t i = 0; i < images.size(); ++i) {
    const std::string problem = problem_of(images[i]);
    if (problem.empty()) {
      report_.add(images[i].name, images[i].label, scores.data() + i * scores_.classes);
    } else {
      log_.error(problem);
      ++failed_;
    }
  }
}

}  // namespace crema
