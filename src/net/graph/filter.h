// Selects the layers of a net: the rules in include and exclude against phase, level and stages.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/log.h"
#include "proto/net.pb.h"

namespace crema {

// The state of a net, from lowest to highest priority: the phase, the `state` block of the net's
// own file, and the settings of the solver (train_state, test_state) or the command line. Stages
// add up.
NetState net_state(Phase phase, const NetParameter& net, const NetState& outer);

// The net without the layers that `state` excludes. Each rule that does not match is logged to
// `log`. `kept`, if given, receives the index in `net` of each layer of the result. An Error for a
// layer with both include and exclude gives its position by `where`, otherwise only its name.
NetParameter filter_net(const NetParameter& net, const NetState& state, Log& log,
                        std::vector<int>* kept = nullptr,
                        const std::function<std::string(int layer)>& where = {});

// Which layer of `net` makes a blob, but is left out in this state, and by which rule; "" if there
// is none. where: position of a layer, or empty.
std::string why_left_out(const NetParameter& net, const NetState& state, const std::string& blob,
                         const std::function<std::string(int layer)>& where);

// A rule matches when all of its conditions match.
bool rule_holds(const NetState& state, const NetStateRule& rule, const std::string& layer,
                Log& log);

}  // namespace crema
