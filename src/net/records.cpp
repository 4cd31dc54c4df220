#include "net/records.h"

#include "base/error.h"

namespace crema {
namespace {

std::string named(const Node& node) {
  return cat("layer \"", node.message.name(), "\" (", node.message.type(), ")");
}

bool is_source_node(const Node& node) {
  return node.bottoms.empty() && !node.tops.empty() && node.parameters.empty();
}

}  // namespace

int64_t batch_of(const Net& net) {
  for (const Node& node : net.graph().nodes) {
    if (!is_source_node(node)) continue;
    const Shape& shape = net.graph().values[node.tops[0]].shape;
    if (shape.axes() > 0) return shape[0];
  }
  return 1;
}

int64_t records_of(const Net& net) {
  for (const auto& [node, source] : sources_of(net.graph())) {
    if (source.records() > 0) return source.records();
  }
  return 0;
}

int64_t count_records(const Net& net) {
  for (const auto& [node, source] : sources_of(net.graph())) {
    if (const int64_t records = source.count_records(); records > 0) return records;
  }
  return 0;
}

WholeEpoch check_whole_epochs(Net& net) {
  const Node *first = nullptr, *endless = nullptr;
  WholeEpoch epoch;
  for (const Node& node : net.graph().nodes) {
    if (!is_source_node(node)) continue;
    DataSource* const source = node.layer->source();
    const int64_t batch = source ? source->records_in(0) : 0;
    if (batch == 0) {
      // The same in each pass: layers say what does not suit the last batch.
      if (!endless && node.message.type() != "DummyData") endless = &node;
      continue;
    }
    const int64_t records = source->count_records(), batches = (records + batch - 1) / batch;
    if (!first) {
      first = &node;
      epoch = {records, batches};
    }
    require(records == epoch.records, named(*first), " has ", epoch.records, " records, but ",
            named(node), " has ", records,
            ": sources that are read together need as many; or give the number of batches");
    require(batches == epoch.batches, named(*first), " reads its ", records, " records in ",
            epoch.batches, " batches, but ", named(node), " in ", batches,
            ": give both the same batch_size");
  }
  if (endless || !first) {
    fail(endless ? named(*endless) : cat("net \"", net.name(), "\""),
         " has no epochs: there is no last record; give the number of batches");
  }
  const auto last = static_cast<uint64_t>(epoch.batches - 1);
  if (records_in(net, last) == records_in(net, 0)) return epoch;
  try {
    net.plan_for(last);
  } catch (const DeviceLost&) {
    throw;
  } catch (const Error& error) {
    fail("the last batch of an epoch has ", records_in(net, last), " records, others ",
         records_in(net, 0), ": ", error.what());
  }
  net.plan_for(0);
  return epoch;
}

int64_t records_in(const Net& net, uint64_t pass) {
  for (const auto& [node, source] : sources_of(net.graph())) {
    if (const int64_t records = source.records_in(pass); records > 0) return records;
  }
  return 0;
}

}  // namespace crema
