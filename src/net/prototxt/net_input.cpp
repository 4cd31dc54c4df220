#include "net/prototxt/net_input.h"

#include <memory>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "net/graph/filter.h"
#include "net/prototxt/prototxt.h"

namespace crema {

NetInput net_input_of(std::shared_ptr<const NetFile> file, Phase phase, const NetState& outer,
                      Log& log) {
  write_notes(log, file->upgrade.notes);
  NetInput input;
  input.options.state = net_state(phase, file->net, outer);
  std::vector<int> kept;
  input.net = filter_net(file->net, input.options.state, log, &kept,
                         [&](int layer) { return file->where(layer); });
  input.preparation = file->preparation;
  input.options.where = [file, kept](int layer) { return file->where(kept[layer]); };
  input.where_field = [file, kept](int layer, const std::string& field) {
    return file->where(kept[layer], field);
  };
  return input;
}

namespace {

NetInput input_of(NetFile read, Phase phase, const NetState& outer, Log& log) {
  return net_input_of(std::make_shared<const NetFile>(std::move(read)), phase, outer, log);
}

}  // namespace

NetInput read_net_input(const std::string& path, Phase phase, const NetState& outer, Log& log,
                        Settings* settings) {
  NetInput input = input_of(read_net_file(path, settings), phase, outer, log);
  input.options.folder = folder_of(path);
  return input;
}

NetInput parse_net_input(const std::string& text, const std::string& name, Phase phase,
                         const NetState& outer, Log& log, Settings* settings) {
  require(!trim(text).empty(), name, ": is empty");
  return input_of(parse_net_text(text, name, settings), phase, outer, log);
}

Precision precision_for(const Context& context, const std::string& name) {
  if (!name.empty()) return precision_named(name);
  return context.device() == Device::gpu ? Precision::tf32 : Precision::fp32;
}

}  // namespace crema
