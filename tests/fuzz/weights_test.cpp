// The results of a run: weights, solver states and means, binary and HDF5.
#include <functional>

#include "data/transforms/mean.h"
#include "fuzz/fuzz.h"
#include "net/weights/tensor_file.h"
#include "net/weights/wire_reader.h"
#include "net/weights/zip_file.h"
#include "proto/blob.pb.h"
#include "solver/fixtures.h"
#include "solver/snapshot/state_file.h"

namespace crema::tests {
namespace weights_test {

const std::string kSolver =
    "type: \"Adam\" momentum: 0.9 momentum2: 0.99 random_seed: 1 "
    "max_iter: 9 snapshot_prefix: \"s\" average_loss: 3 ";

// Two iterations in `folder`, with a snapshot in binary or HDF5.
Files snapshot_of(const Folder& folder, bool hdf5, const std::string& more) {
  Context context(Device::cpu);
  SolverFile file = solver_file(cat(kSolver, more, hdf5 ? " snapshot_format: HDF5" : ""));
  file.solver.set_snapshot_prefix(folder.file("s"));
  Solver solver(context, file);
  solver.step(2);
  solver.snapshot();
  Files files;
  for (const std::string& name : folder.names()) {
    if (starts_with(name, "s_iter_2")) files[name] = folder.read(name);
  }
  return files;
}

std::vector<Files> snapshots(bool hdf5) {
  std::vector<Files> all;
  for (const char* more : {"", "ema_decay: 0.9"}) {
    const Folder folder;
    all.push_back(snapshot_of(folder, hdf5, more));
  }
  return all;
}

std::vector<Files> only(const std::string& part, std::vector<Files> all) {
  for (Files& files : all) {
    std::erase_if(files,
                  [&](const auto& file) { return file.first.find(part) == std::string::npos; });
  }
  return all;
}

void load(const std::string& path) {
  static Context context(Device::cpu);
  static Net net(context, parse_net_text(kNet, "net.prototxt").net, [] {
    NetOptions options;
    options.state.set_phase(TRAIN);
    return options;
  }());
  LoadOptions options;
  options.mode = WeightsMode::match;
  load_weights(net, path, options);
}

template <typename Message>
void damage_binary(Dice& dice, std::string& bytes) {
  Message message;
  if (dice.one_in(3) || !message.ParsePartialFromString(bytes)) return damage_wire(dice, bytes);
  damage_message(dice, message, {"ip1", "ip2", "data", "InnerProduct"});
  bytes = message.SerializePartialAsString();
}

TEST(Fuzz, Weights) {
  fuzz({"caffemodel", [] { return only("_2.caffemodel", snapshots(false)); },
        [](Dice& dice, Files& files, const Files&) {
          damage_binary<NetParameter>(dice, files.begin()->second);
        },
        [](const std::string& folder, const Files& files) {
          load(folder + "/" + files.begin()->first);
        }});
}

TEST(Fuzz, Hdf5Weights) {
  fuzz({"caffemodel.h5", [] { return only("_2.caffemodel", snapshots(true)); },
        [](Dice& dice, Files& files, const Files& other) {
          damage_bytes(dice, files.begin()->second, other.begin()->second);
        },
        [](const std::string& folder, const Files& files) {
          load(folder + "/" + files.begin()->first);
        }});
}

TEST(Fuzz, TorchFiles) {
  fuzz({"pth",
        [] {
          std::vector<Files> corpus{{{"pth", golden("torch/legacy.pth")}}};
          for (const char* name : {"state_dict", "checkpoint"}) {
            if (ZipFile::available())
              corpus.push_back({{"pth", golden(cat("torch/", name, ".pth"))}});
          }
          return corpus;
        },
        [](Dice& dice, Files& files, const Files& other) {
          damage_bytes(dice, files["pth"], other.at("pth"));
        },
        [](const std::string& folder, const Files&) {
          const std::unique_ptr<TensorFile> file = open_tensor_file(folder + "/pth");
          for (const auto& entry : file->entries()) file->values(entry.first);
        }});
}

TEST(Fuzz, SafeTensors) {
  fuzz(
      {"safetensors",
       [] {
         const std::string head =
             R"({"__metadata__":{"format":"pt"},"a.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
             R"("a.bias":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]},"n":{"dtype":"I64","shape":[],"data_offsets":[32,40]}})";
         const uint64_t size = head.size();
         std::string file(reinterpret_cast<const char*>(&size), sizeof size);
         return std::vector<Files>{{{"weights", file + head + std::string(40, '\x3f')}}};
       },
       [](Dice& dice, Files& files, const Files& other) {
         std::string& file = files["weights"];
         if (dice.one_in(3) || file.size() < 48)
           return damage_bytes(dice, file, other.at("weights"));
         std::string head = file.substr(8, file.size() - 48);
         damage_text(dice, head,
                     {"\"a.weight\"", "\"dtype\"", "\"F16\"", "\"F64\"", "\"shape\"", "[", "]", "{",
                      "}", "18446744073709551615", "-1", "4611686018427387904", "null", ","},
                     head);
         const uint64_t size = head.size();
         file = std::string(reinterpret_cast<const char*>(&size), sizeof size) + head +
                file.substr(file.size() - 40);
       },
       [](const std::string& folder, const Files&) {
         const std::unique_ptr<TensorFile> file = open_tensor_file(folder + "/weights");
         for (const auto& entry : file->entries()) file->values(entry.first);
       }});
}

// The whole path of -snapshot.
void resume(const std::string& folder, const Files& files) {
  std::string state;
  for (const auto& [name, content] : files)
    if (name.find(".solverstate") != std::string::npos) state = name;
  read_solver_state(folder + "/" + state);
  Context context(Device::cpu);
  SolverFile file = solver_file(cat(kSolver, files.size() > 2 ? "ema_decay: 0.9" : ""));
  SolverOptions options;
  options.snapshot = folder + "/" + state;
  Solver solver(context, file, options);
  solver.step(1);
}

std::string& state_of(Files& files) {
  for (auto& [name, content] : files)
    if (name.find(".solverstate") != std::string::npos) return content;
  fail("the snapshot has no state");
}

// A state with impossible values, with a matching checksum.
bool damage_state(Dice& dice, std::string& bytes, bool hdf5) {
  const Folder folder;
  folder.write("s", bytes);
  SolverState state;
  try {
    state = read_solver_state(folder.file("s"));
    damage_message(dice, state, {"s_iter_2.caffemodel", "s"});
    write_solver_state(state, folder.file("t"), hdf5);
  } catch (const Error&) {
    return false;
  }
  bytes = folder.read("t");
  return true;
}

TEST(Fuzz, States) {
  fuzz({"solverstate", [] { return snapshots(false); },
        [](Dice& dice, Files& files, const Files&) {
          std::string& state = state_of(files);
          if (dice.one_in(3) || !damage_state(dice, state, false)) damage_wire(dice, state);
        },
        resume});
}

TEST(Fuzz, Hdf5States) {
  fuzz({"solverstate.h5", [] { return snapshots(true); },
        [](Dice& dice, Files& files, const Files& other) {
          Files copy = other;
          std::string& state = state_of(files);
          if (!dice.one_in(3) || !damage_state(dice, state, true))
            damage_bytes(dice, state, state_of(copy));
        },
        resume});
}

TEST(Fuzz, Means) {
  fuzz({"mean",
        [] {
          std::vector<Files> corpus;
          for (const char* name : {"mean", "mean_encoded", "mean_gray"})
            corpus.push_back({{"mean", golden(cat("formats/", name, ".binaryproto"))}});
          return corpus;
        },
        [](Dice& dice, Files& files, const Files&) {
          damage_binary<BlobProto>(dice, files["mean"]);
        },
        [](const std::string& folder, const Files&) { read_mean(folder + "/mean").channels(); }});
}

}  // namespace weights_test
}  // namespace crema::tests
