// The work of `crema quantize`: folds a net, chooses ranges from sample data and measures what the integers
// cost.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "exchange/quantize/fold_net.h"
#include "exchange/quantize/quantize.h"
#include "net/prototxt/net_input.h"
#include "net/prototxt/prototxt.h"
#include "tools/quantize/calibration_feed.h"
#include "tools/quantize/score.h"

namespace crema {

struct QuantizationSettings {
  std::string calibrate = "train";  // as -calibrate
  int64_t images = 512;
  std::optional<RangeRule> rule;  // none: the ranges in the weights, or else entropy
  int weight_bits = 8;
  int64_t test_batches = 50;
  std::set<std::string> keep;  // layers that stay in float32
};

// One layer of the report.
struct QuantizedLayer {
  LayerSteps steps;
  double noise = 0;      // signal to noise of the layer's top in the quantized net, decibels
  double alone = 0;      // score if only this layer is quantized; if measured
  bool is_kept = false;  // it stays in float32
};

class QuantizationJob {
 public:
  // file: the net with the layers of all phases; input: those of phase TEST. load: loads the weights.
  // Folds the net. If it reads no files, settings.calibrate fills its inputs.
  QuantizationJob(Context& context, const NetFile& file, const NetInput& input,
                  const QuantizationSettings& settings, const std::function<void(Net&)>& load);

  const std::vector<std::string>& folded() const { return folded_.folded; }
  // Whether the weights have ranges from training, and these are taken.
  bool is_trained() const { return !trained_.empty(); }
  // Whether the net's results can be judged: it reads data with labels.
  bool has_score() const { return !feed_; }
  // The score in float32.
  Score exact_score();
  // Runs the sample data and chooses the steps of all layers. Returns how many images it read. Error if
  // the data ends in no batch, if settings.keep has a name that no layer has, and if no layer is left.
  int64_t choose();
  std::vector<QuantizedLayer>& layers() { return layers_; }
  // The score with the layers that are not kept in float32 quantized.
  Score score();
  // Fills QuantizedLayer::alone. Calls progress with each index.
  void score_each(const std::function<void(size_t)>& progress);
  // Fills QuantizedLayer::noise.
  void measure_noise();

  // The net as it is now; save() writes its weights.
  NetParameter net() const;
  void save(const std::string& path);

 private:
  std::unique_ptr<Net> make(const NetParameter& net, const NetWeights& weights,
                            NetOptions options) const;
  std::string where(const std::string& layer) const;  // its position in the file
  // With these layers quantized.
  struct QuantizedNet {
    NetParameter net;
    NetWeights weights;
  };
  QuantizedNet with(const std::set<std::string>& layers) const;
  std::set<std::string> quantized() const;
  Score score_with(const std::set<std::string>& layers) const;
  NetParameter calibration_net() const;
  void read_trained_ranges(const std::function<void(Net&)>& load);
  BatchFeed batch_feed();

  Context& context_;
  const NetFile& file_;
  const NetInput& input_;
  QuantizationSettings settings_;
  NetOptions options_;
  std::optional<CalibrationFeed> feed_;  // for a net that reads no files
  FoldedNet folded_;
  std::map<std::string, TrainedRange> trained_;  // by layer
  std::vector<QuantizedLayer> layers_;
  int64_t calibration_batches_ = 0;
};

}  // namespace crema
