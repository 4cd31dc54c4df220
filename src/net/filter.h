// Which layers of a net take part: the rules in include and exclude against phase, level, stages.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/log.h"
#include "proto/net.pb.h"

namespace crema {

// The state a net is built in, lowest to highest: the phase, the `state` block of the net's own
// file, what the solver (train_state, test_state) or the command line says. Stages add up.
NetState net_state(Phase phase, const NetParameter& net, const NetState& outer);

// The net without the layers that `state` leaves out; a line goes to `log` for each rule that does
// not hold. `kept`, when given, gets the index in `net` of each layer of the result. An Error for a
// layer with both include and exclude names it by `where`, else by its name alone.
NetParameter filter_net(const NetParameter& net, const NetState& state, Log& log,
                        std::vector<int>* kept = nullptr,
                        const std::function<std::string(int layer)>& where = {});

// A rule holds when everything it asks for holds.
bool rule_holds(const NetState& state, const NetStateRule& rule, const std::string& layer,
                Log& log);

}  // namespace crema
