// What is legal in a net, but hardly meant: each check adds what it finds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "net/check/checked_net.h"
#include "net/check/finding.h"
#include "net/check/source_facts.h"

namespace crema {

// A layer of a training net that computes what no loss depends on, as nobody reads its tops.
void check_unread(const CheckedNet& net, Findings* findings);

// use_global_stats: true in a training that starts without weights: the statistics stay 0.
void check_global_stats(const CheckedNet& net, bool has_weights, Findings* findings);

// BatchNorm right before an activation, without the Scale or Bias that gives it a range back.
void check_batch_norm(const CheckedNet& net, Findings* findings);

// What makes a net learn nothing, or something else than is meant: layers in front of losses that
// change what these expect, weights without a gradient, weights that begin equal or far too large, an
// Accuracy of other scores than those that are learned. has_weights: it does not begin from its
// fillers.
void check_learning(const CheckedNet& net, bool has_weights, Findings* findings);

// A loss that is a sum over the batch, or over all places of an image, in a training with this
// rate. For update rules that follow the size of gradients; others do not see it.
void check_loss_sum(const CheckedNet& net, double rate, Findings* findings);

// What a restricted Boltzmann machine does not learn from: binary units that get values outside of 0 to 1,
// units that all stay equal, a rate that is too high for Gaussian units, weight decay of biases. rate: 0
// where the update rule does not follow the size of gradients.
void check_rbm(const CheckedNet& net, double rate, double decay, bool has_weights,
               Findings* findings);

// Whether the net has such a loss.
bool sums_losses(const CheckedNet& net);

// The next ones compare the net with what the source in `layer` holds.

// Records in the order of their labels, in a training that does not shuffle them.
void check_order(const CheckedNet& net, int layer, const SourceFacts& facts, Findings* findings);

// Labels that the layer which is compared with them has no score for.
void check_labels(const CheckedNet& net, int layer, const SourceFacts& facts, Findings* findings);

// Names of the classes of the source, of which there are not as many as scores.
void check_class_names(const CheckedNet& net, int layer, Findings* findings);

// mean_value and scale that do not fit the stored values.
void check_values(const CheckedNet& net, int layer, const SourceFacts& facts, Findings* findings);

// Data far from a mean of zero, in a training with this rate.
void check_centre(const CheckedNet& net, int layer, const SourceFacts& facts, double rate,
                  Findings* findings);

// Data that the units of a restricted Boltzmann machine cannot show.
void check_rbm_data(const CheckedNet& net, int layer, const SourceFacts& facts, Findings* findings);

// Objects outside of their images, and those whose label the layer that reads them has no class for.
void check_objects(const CheckedNet& net, int layer, const SourceFacts& facts, Findings* findings);

// Sources whose samples belong together, but fall out of step. facts: of each layer.
void check_in_step(const CheckedNet& net, const std::vector<std::optional<SourceFacts>>& facts,
                   Findings* findings);

// Layers of a weights file that the net does not have; an error where none fits.
void check_weights(const CheckedNet& net, const std::string& path, const std::string& where,
                   Findings* findings);

}  // namespace crema
