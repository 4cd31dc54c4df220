// Pictures of a net: its first filters, and the samples of a test that it gets wrong.
#pragma once

#include <cstdint>
#include <vector>

#include "net/net.h"
#include "solver/events/events.h"

namespace crema {

// An image of channels, height and width, scaled so that its smallest value is black and its largest
// white; values that are not finite are black. Three planes are colours, in the order red, green,
// blue with `rgb`, else blue, green, red; of any other number the mean is shown in grey.
Picture picture_of(const float* values, const Shape& image, bool rgb);

// The weights of the first Convolution, or of an InnerProduct that reads the images, each scaled so
// that its smallest value is black and its largest white. No pictures: the net has no such layer.
// rgb: three planes are red, green and blue; else blue, green and red, the order of Caffe's images.
event::Pictures first_filters(Net& net, bool rgb = false);

// Collects the samples whose highest score is not at their label.
class Mistakes {
 public:
  struct Sample {
    Picture picture;
    int64_t label = 0, predicted = 0;
    double confidence = 0;  // probability that the net gave to its answer
  };

  // The values it looks at: images, labels and scores. Empty where a net lacks one of them, or its
  // Input layers are to be filled by a caller.
  static std::vector<int> values(const Graph& graph);

  // The net must keep these values (NetOptions::kept, or keep_blobs) and outlive this. most: how
  // many samples stay, those with the highest confidence.
  Mistakes(Net& net, size_t most, bool rgb = false);
  // False: values() is empty.
  bool possible() const { return scores_ >= 0; }
  int64_t batch() const;    // samples of a pass
  int64_t records() const;  // of the images' source; 0: it does not know
  // A new test begins; other ranks add the first `earlier` samples of it.
  void clear(int64_t earlier = 0);
  // Call after each forward pass. Once all records were seen, a source starts over: then nothing is
  // added, so that no sample comes twice.
  void add();

  // Combines the samples of all ranks, each of which has added a part of the test, in rank order.
  void merge(Communicator& world);

  const std::vector<Sample>& samples() const { return samples_; }  // most confident first
  int64_t wrong() const { return wrong_; }
  int64_t tested() const { return tested_; }
  // With a caption "3 > 5 98%" each: label, answer and confidence. The iteration is the caller's.
  event::Pictures pictures() const;

 private:
  bool stays(double confidence) const;
  void drop_less_sure(Communicator& world);

  Net& net_;
  size_t most_;
  bool rgb_;
  int images_ = -1, labels_ = -1, scores_ = -1;  // values of the graph
  bool probabilities_ = false;
  std::vector<Sample> samples_;
  int64_t earlier_ = 0, wrong_ = 0, tested_ = 0;
};

}  // namespace crema
