// LayerFacts: what is known of a type before a layer of it is set up. Features that read nets
// (checks, deploy, surgery, drawings) ask for these facts and keep no lists of types. A class
// declares them once, a base class for its family, and REGISTER_LAYER puts them into the registry:
//   static constexpr LayerFacts facts = {.kind = LayerKind::activation, .elementwise = true};
// What depends on fields or shapes is in layer_traits.h.
#pragma once

#include <limits>
#include <string>
#include <string_view>

namespace crema {

enum class LayerKind {
  other,
  source,       // data, or numbers without data
  convolution,  // transposed ones, too
  dense,        // each output depends on a whole vector: InnerProduct
  embedding,
  attention,
  recurrent,  // steps along time, which is the first axis
  activation,
  math,     // a fixed function of each value: Power, Exp
  affine,   // a factor or summand, per channel or per position: Scale, Bias
  dropout,  // random changes in training
  norm,
  pooling,
  resize,     // other pixels of the same channels: Crop, Interp
  join,       // several blobs to one, or one to several: Eltwise, Concat, Slice
  shape,      // another shape or order: Reshape, Permute
  reduction,  // fewer values that summarize others: Reduction, ArgMax
  detection,  // boxes: priors, proposals, detections
  loss,
  metric,  // a result for a person, compared with labels
  sink,    // no top: writes files, or nothing
};

// What bottom 1 has.
enum class LabelKind {
  none,     // something else
  classes,  // the class of each sample or position, a number from 0 up
  scored,   // the same, and bottom 0 has a score for each class, along axis 1
  answers,  // yes or no, or a share, for each of several questions
};

// Where a source's samples come from.
enum class SourceContent {
  none,         // not a source
  generated,    // nothing is read
  given,        // by a program
  numbers,      // records of any numbers
  regions,      // random regions of images
  images,       // images, in order or shuffled
  image_pairs,  // the same, and images as labels
};

// What becomes of the layer in a net for use.
enum class InUse {
  stays,
  bypassed,  // bottom 0 takes the place of top 0
  left_out,
};

struct LayerFacts {
  LayerKind kind = LayerKind::other;

  // Each value of top 0 depends only on those at the same position in the bottoms, and on its
  // channel: maps are as good as rows.
  bool elementwise = false;
  // Works on the channels of each position, so that a map is as good as a row if `axis` is 1.
  bool along_channels = false;
  // Top 0 has the channels of bottom 0.
  bool keeps_channels = elementwise;
  // Tops have values of the bottoms (of bottom 0, unless kind is join) at other positions, or 0.
  bool copies = false;
  // A channel of bottom 0 that is 0 is 0 in top 0, if its values in the layer's parameters are 0 as well. Other
  // channels do not depend on it.
  bool keeps_zero = false;
  // Each channel of top 0 starts with mean 0.
  bool centres = false;
  // Bounds of top 0 that hold with the default fields.
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();

  // Blobs that a gradient changes: how many there are at least, without the one of bias_term.
  int learned = 0;
  // Reads quantization_param.
  bool quantizes = false;

  LabelKind labels = LabelKind::none;
  // Numbers of each region in bottom 1: that of its image, then corners of boxes; 0: no regions.
  int regions = 0;
  // For a loss: the type of the layer whose results it compares with the labels, "Softmax" or
  // "Sigmoid", if it computes these itself.
  std::string_view activation = {};
  InUse in_use = InUse::stays;
  // Tops have only the best of many candidates, with non-maximum suppression.
  bool selects = false;

  SourceContent content = SourceContent::none;
};

// The facts that a class declares; `otherwise` if it declares none.
template <typename Class>
constexpr LayerFacts declared_facts(const LayerFacts& otherwise = {}) {
  if constexpr (requires { Class::facts; }) {
    return Class::facts;
  } else {
    return otherwise;
  }
}

// The facts of a registered type. An unknown one has the defaults, but a name that ends in "Loss" or
// "Accuracy" says its kind.
LayerFacts facts_of(const std::string& type);

}  // namespace crema
