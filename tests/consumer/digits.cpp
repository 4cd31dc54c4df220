// Trains a net for digits, then classifies a file of images in MNIST's format with it, in two threads.
#include <crema.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <iostream>
#include <iterator>

std::vector<unsigned char> read_behind(size_t header, const char* path) {
  std::ifstream file(path, std::ios::binary);
  file.ignore(static_cast<std::streamsize>(header));
  return {std::istreambuf_iterator<char>(file), {}};
}

int main(int argc, char** argv) {
  if (argc != 5) return std::cerr << "digits SOLVER NET IMAGES LABELS\n", 2;
  try {
    crema::Trainer trainer(argv[1]);
    while (trainer.iteration() < trainer.max_iterations()) {
      trainer.step(50);
      std::cout << "iteration " << trainer.iteration() << ", loss " << trainer.loss() << '\n';
    }
    const crema::SavedFiles saved = trainer.snapshot();

    constexpr size_t kBatch = 100, kPixels = 28 * 28, kClasses = 10;
    crema::Model model(argv[2], {.weights = {saved.weights}, .deploy = true, .batch = kBatch});
    const auto images = read_behind(16, argv[3]), labels = read_behind(8, argv[4]);
    // The digits that a thread gets right: every other batch, with its own Model.
    const auto classify = [&](crema::Model own, size_t first) {
      std::vector<float> input(kBatch * kPixels);
      size_t right = 0;
      for (size_t seen = first; seen + kBatch <= labels.size(); seen += 2 * kBatch) {
        for (size_t i = 0; i < input.size(); ++i)
          input[i] = static_cast<float>(images.at(seen * kPixels + i)) / 256;
        own.set_input("data", input);
        own.forward();
        const float* scores = own.view("prob").data();
        for (size_t i = 0; i < kBatch; ++i, scores += kClasses)
          right += std::max_element(scores, scores + kClasses) - scores == labels[seen + i];
      }
      return right;
    };
    // shared(): both compute on the same weights.
    auto other = std::async(std::launch::async, classify, model.shared(), kBatch);
    const size_t right = classify(std::move(model), 0) + other.get();
    const size_t seen = labels.size() / kBatch * kBatch;
    std::cout << "accuracy " << static_cast<double>(right) / static_cast<double>(seen) << '\n';
  } catch (const crema::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
