#include "net/weights/weight_names.h"

#include <map>

#include "base/error.h"
#include "base/files.h"
#include "net/prototxt/prototxt_parse.h"
#include "proto/weight_names.pb.h"

namespace crema {

namespace {

// More extents of 1 than the tensors of any module have.
constexpr uint32_t kMaxOnes = 8;

}  // namespace

WeightNames read_weight_names(const std::string& path, const Variables& given) {
  WeightNamesParameter message;
  const auto positions = parse_text(read_text(path), path, &message, given);
  WeightNames names;
  names.mean.assign(message.mean().begin(), message.mean().end());
  names.std.assign(message.std().begin(), message.std().end());
  require(names.mean.size() == names.std.size() && (names.mean.empty() || names.mean.size() == 3),
          positions->where("mean"), ": ", names.mean.size(), " values of mean and ",
          names.std.size(), " of std; expected three of each, for R, G, B, or none");
  for (size_t i = 0; i < names.std.size(); ++i)
    require(names.std[i] > 0, positions->where("std"), ": std is ", names.std[i],
            "; expected positive numbers");
  names.eps = message.eps();
  require(names.eps > 0, positions->where("eps"), ": eps is ", names.eps,
          "; expected a positive number");
  names.left_out.assign(message.left_out().begin(), message.left_out().end());
  std::map<std::string, std::string> seen;
  for (int i = 0; i < message.pair_size(); ++i) {
    const WeightPairParameter& pair = message.pair(i);
    const std::string place = cat("pair[", i, "]");
    require(pair.leading_ones() <= kMaxOnes, positions->where(place + ".leading_ones"),
            ": leading_ones is ", pair.leading_ones(), "; expected at most ", kMaxOnes);
    require(pair.trailing_ones() <= kMaxOnes, positions->where(place + ".trailing_ones"),
            ": trailing_ones is ", pair.trailing_ones(), "; expected at most ", kMaxOnes);
    WeightNames::Pair read{pair.from(),
                           pair.to(),
                           positions->where(place),
                           {pair.tensor().begin(), pair.tensor().end()},
                           static_cast<int>(pair.leading_ones()),
                           static_cast<int>(pair.trailing_ones()),
                           pair.old_from()};
    const auto [at, is_new] = seen.emplace(read.to, read.where);
    require(is_new, read.where, ": layer \"", read.to, "\" is there twice; first at ", at->second);
    names.pairs.push_back(std::move(read));
  }
  require(!names.pairs.empty(), path,
          ": has no pair; expected pair { from: \"layer1.0.conv1\" to: \"res2a_branch2a\" }");
  return names;
}

}  // namespace crema
