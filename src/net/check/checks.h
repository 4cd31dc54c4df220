// Finds things in a net that are legal but probably unintended: each check adds its findings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "net/check/checked_net.h"
#include "net/check/finding.h"
#include "net/check/source_facts.h"

namespace crema {

// A layer of a training net that no loss depends on, because no layer reads its tops.
void check_unread(const CheckedNet& net, Findings* findings);

// A training net that has data and scores, but no loss: nothing is learned.
void check_has_loss(const CheckedNet& net, Findings* findings);

// use_global_stats: true in a run that starts without weights: the statistics stay 0.
void check_global_stats(const CheckedNet& net, bool has_weights, Findings* findings);

// A BatchNorm without factor and shift in front of an activation, in training.
void check_batch_norm(const CheckedNet& net, Findings* findings);

// What makes a net learn nothing, or something else than is meant: layers in front of losses that
// change what these expect, weights without a gradient, weights that begin equal or far too large, an
// Accuracy of other scores than those that are learned. has_weights: it does not begin from its
// fillers.
void check_learning(const CheckedNet& net, bool has_weights, Findings* findings);

// A loss that is a sum over the batch, or over all positions of an image, in a run with this rate.
// For update rules that scale with gradients; others are not affected.
void check_loss_sum(const CheckedNet& net, double rate, Findings* findings);

// Mistakes with a restricted Boltzmann machine: binary units with values outside of 0 to 1, units
// that all stay equal, a rate that is too high for Gaussian units, weight decay of biases. rate: 0
// if the update rule does not scale with gradients.
void check_rbm(const CheckedNet& net, double rate, double decay, bool has_weights,
               Findings* findings);

// Whether the net has such a loss.
bool sums_losses(const CheckedNet& net);

// The next ones compare the net with the data of the source in `layer`.

// Records sorted by label, in a run that does not shuffle them.
void check_order(const CheckedNet& net, int layer, const SourceFacts& facts, Findings* findings);

// Labels that the layer which is compared with them has no score for.
void check_labels(const CheckedNet& net, int layer, const SourceFacts& facts, Findings* findings);

// Names of the classes of the source, of which there are not as many as scores.
void check_class_names(const CheckedNet& net, int layer, Findings* findings);

// mean_value and scale that do not fit the stored values.
void check_values(const CheckedNet& net, int layer, const SourceFacts& facts, Findings* findings);

// Data far from a mean of zero, in a run with this rate.
void check_centre(const CheckedNet& net, int layer, const SourceFacts& facts, double rate,
                  Findings* findings);

// Data that the units of a restricted Boltzmann machine cannot show.
void check_rbm_data(const CheckedNet& net, int layer, const SourceFacts& facts, Findings* findings);

// Objects outside of their images, and those with a label for which the reading layer has no class.
void check_objects(const CheckedNet& net, int layer, const SourceFacts& facts, Findings* findings);

// Sources whose samples belong together, but get out of step. facts: one per layer.
void check_in_step(const CheckedNet& net, const std::vector<std::optional<SourceFacts>>& facts,
                   Findings* findings);

// Layers of a weights file that the net does not have; an error where none fits.
void check_weights(const CheckedNet& net, const std::string& path, const std::string& where,
                   Findings* findings);

}  // namespace crema
