#include "tools/exchange/check_target.h"

#include "exchange/caffe/export.h"
#include "tools/classify/deployed_model.h"
#include "tools/flags/net_flags.h"

namespace crema {

Findings findings_of_target(ProgramLog& log, const TargetFlags& flags) {
  const Dialect& dialect = find_dialect(flags.target, "-target");
  Context context(Device::cpu);
  context.set_log(log.library());
  NetInput input = read_net(log, flags, TEST);
  const DeployedNet deployed = deploy_model(
      log, DeployFlags::without<"labels", "resize", "mean", "scale", "rgb">(flags), input, 0);
  NetOptions options = input.options;
  options.where = [&](int i) { return input.options.where(deployed.origins[i]); };
  options.keep_blobs = options.row_major = true;
  options.fuse = false;
  const auto position_of = [&](const CaffeChange& change) {
    for (const int layer : deployed.origins)
      if (input.options.where(layer) == change.where) return input.where_field(layer, change.field);
    return change.where;
  };
  Net net(context, deployed.net, options);
  Findings findings;
  for (const CaffeChange& change : check_caffe(net, dialect)) {
    std::string where = change.field.empty() ? change.where : position_of(change);
    // Notes are many: without the files that include this one.
    if (!change.refused) where = where.substr(0, where.find(" ("));
    add(&findings, change.refused ? Severity::error : Severity::info, where, change.layer, ": ",
        change.text);
  }
  return findings;
}

}  // namespace crema
