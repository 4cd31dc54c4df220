// What is legal in a net, but hardly meant: each check adds what it finds.
#pragma once

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

// A loss that is a sum over the batch, or over all places of an image, in a training with this
// rate. For update rules that follow the size of gradients; others do not see it.
void check_loss_sum(const CheckedNet& net, double rate, Findings* findings);

// Whether the net has such a loss.
bool sums_losses(const CheckedNet& net);

// The next four compare the net with what the source in `layer` holds.

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

// Layers of a weights file that the net does not have; an error where none fits.
void check_weights(const CheckedNet& net, const std::string& path, const std::string& where,
                   Findings* findings);

}  // namespace crema
