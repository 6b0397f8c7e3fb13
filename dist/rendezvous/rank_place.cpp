// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/rank_place.h"

#include <algorithm>
#include <map>

#include "core/emulated.h"
#include "dist/rendezvous/message.h"
#include "kernels/error.h"

namespace weft::dist {
namespace {

/// Longer than rank 0 waits: it knows who is missing, and its end tells the others.
constexpr Milliseconds kWord{2000};

/// A table with one line per rank.
std::string table(const std::vector<RankPlace>& places) {
  std::vector<std::vector<std::string>> rows{{"rank", "host", "device", "GPU", "backend"}};
  for (size_t rank = 0; rank < std::min(places.size(), kTableRows); ++rank) {
    const RankPlace& place = places[rank];
    rows.push_back(
        {std::to_string(rank), place.host, str(place.device), place.gpu.empty() ? "-" : place.gpu, place.backend});
  }
  std::vector<size_t> width(rows[0].size());
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  std::string text;
  for (const auto& row : rows) {
    std::string line = " ";
    for (size_t i = 0; i < row.size(); ++i) line += " " + row[i] + std::string(width[i] - row[i].size() + 1, ' ');
    text += "\n" + line.substr(0, line.find_last_not_of(' ') + 1);
  }
  return text;
}

RankPlace unpacked_place(const std::string& bytes) {
  MessageReader reader(bytes);
  RankPlace place;
  place.host = reader.text();
  place.machine = reader.text();
  place.local_rank = static_cast<int>(reader.number());
  place.device.kind = static_cast<DeviceKind>(reader.number());
  place.device.index = static_cast<int>(reader.number());
  place.gpu = reader.text();
  place.backend = reader.text();
  place.error = reader.text();
  reader.end();
  return place;
}

}  // namespace

/// Uses an arbitrary message kind, since the store keeps bytes.
std::string packed_place(const RankPlace& place) {
  MessageWriter writer(MessageKind::set);
  writer.text(place.host)
      .text(place.machine)
      .number(place.local_rank)
      .number(static_cast<int64_t>(place.device.kind))
      .number(place.device.index);
  return writer.text(place.gpu).text(place.backend).text(place.error).frame().substr(4);
}

std::string enter_emulator(const std::string& device) {
  if (!is_emulated(device)) return device;
  const LaunchEnvironment place = read_launch_environment(environment_variables());
  constexpr int kMost = 64;  // limit of weft-emulate
  return weft::enter_emulator(device, std::min(place.local_size > 0 ? place.local_size : place.size, kMost));
}

Device choose_device(const std::string& text, int local_rank, int gpus) {
  if (text == "auto" && gpus == 0) return Device{};
  if ((text == "auto" || text == "cuda") && gpus > 0) return Device{DeviceKind::cuda, local_rank % gpus};
  const Device device = parse_device(text);
  WEFT_CHECK(device.kind != DeviceKind::cuda || device.index < gpus, "init: device ", device,
             " cannot be used: this process sees ", gpus == 0 ? "no GPU" : str(gpus, gpus == 1 ? " GPU" : " GPUs"),
             " (CUDA_VISIBLE_DEVICES?)");
  return device;
}

void check_places(const std::vector<RankPlace>& places) {
  std::map<std::string, size_t> owner;
  for (size_t rank = 0; rank < places.size(); ++rank) {
    const RankPlace& place = places[rank];
    WEFT_CHECK(place.error.empty(), place.error, " (rank ", rank, " on ", place.host, ")");
    WEFT_CHECK(place.backend == places[0].backend, "init: rank ", rank, " on ", place.host, " would use backend ",
               place.backend, ", rank 0 on ", places[0].host, " ", places[0].backend,
               ": name one backend, and see that all ranks have the same devices", table(places));
    if (place.gpu.empty() || place.backend != "nccl") continue;
    const auto [first, is_new] = owner.emplace(place.gpu, rank);
    WEFT_CHECK(is_new, "init: ranks ", first->second, " and ", rank,
               " are on one GPU, which NCCL refuses. Start at most as many ranks on "
               "a host as it has GPUs, let the launcher show each rank its own or all of them all "
               "(CUDA_VISIBLE_DEVICES), or use backend "
               "gloo or mpi",
               table(places));
  }
}

std::vector<LocalRank> local_ranks(const std::vector<RankPlace>& places) {
  std::map<std::string, int> sizes;
  std::vector<LocalRank> locals;
  for (const RankPlace& place : places) locals.push_back({.rank = sizes[place.machine]++});
  for (size_t rank = 0; rank < places.size(); ++rank) locals[rank].size = sizes[places[rank].machine];
  return locals;
}

LocalRank exchange_places(Session& session, const std::string& name, const RankPlace& own,
                          const LaunchEnvironment& environment, Milliseconds timeout) {
  Store& store = session.store();
  store.set(str(name, '/', environment.rank), packed_place(own));
  const std::string answers = name + "/answer";
  if (environment.rank == 0) {
    std::vector<RankPlace> places;
    try {
      for (const std::string& text : session.wait_for_all(name, environment.size, timeout))
        places.push_back(unpacked_place(text));
    } catch (const Error& failure) {
      session.give_up(failure.what());  // the others hear who is missing
      throw;
    }
    std::string error;
    try {
      check_places(places);
    } catch (const Error& failure) {
      error = failure.what();  // for all ranks
    }
    std::vector<std::string> texts;
    for (const LocalRank& local : local_ranks(places))
      texts.push_back(packed({error, std::to_string(local.rank), std::to_string(local.size)}));
    store.set_all(answers, texts);
  }
  const std::vector<std::string> answer =
      unpacked(session.wait_for(str(answers, '/', environment.rank), timeout + kWord));
  WEFT_CHECK(answer.size() == 3, "init: rank 0 has sent ", answer.size(), " texts");
  WEFT_CHECK(answer[0].empty(), answer[0]);
  return {std::stoi(answer[1]), std::stoi(answer[2])};
}

std::string choose_backend(const std::string& text, Device device, const LaunchEnvironment& environment,
                           const std::vector<std::string>& built) {
  const auto has = [&](const char* name) { return std::find(built.begin(), built.end(), name) != built.end(); };
  if (text != "auto") {
    WEFT_CHECK(text != "mpi" || environment.is_mpi_rank, "init: backend mpi: this process is no MPI rank (",
               environment.launcher,
               environment.slurm_tasks > 1 ? str(" has started ", environment.slurm_tasks,
                                                 " tasks, but each would be an MPI world of its own). Start with srun "
                                                 "--mpi=pmix or mpirun, or use backend gloo")
                                           : "). Start with mpirun or srun --mpi=pmix, or use backend gloo");
    return text;
  }
  if (device.kind == DeviceKind::cuda && has("nccl")) return "nccl";
  // Slurm's PMI is for MPICH; an Open MPI that supports PMIx only, as Debian's, ends the process in MPI_Init.
  const bool may_abort = environment.launcher == "PMI" && environment.slurm_tasks > 0 && has("gloo");
  if (environment.is_mpi_rank && has("mpi") && !may_abort) return "mpi";
  WEFT_CHECK(has("gloo"), "init: no backend for ", environment.size, " ranks on ", name(device.kind),
             ": this build has ", built.empty() ? "none" : str(built.size(), " that cannot be used here"),
             ". apt-get install libgloo-dev (or libopenmpi-dev openmpi-bin, and start with mpirun), then configure and "
             "build again");
  return "gloo";
}

std::vector<std::string> built_backends() {
  std::vector<std::string> names;
  if (WEFT_HAVE_NCCL) names.push_back("nccl");
  if (WEFT_HAVE_MPI) names.push_back("mpi");
  if (WEFT_HAVE_GLOO) names.push_back("gloo");
  return names;
}

}  // namespace weft::dist
