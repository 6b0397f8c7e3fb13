// SPDX-License-Identifier: Apache-2.0
#include "dist/fsdp/checkpoint_writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <fstream>
#include <future>
#include <random>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <utility>

#include "core/autograd.h"
#include "io/atomic_file.h"
#include "io/checkpoint_index.h"
#include "io/disk_work.h"
#include "io/file_reader.h"
#include "io/safetensors.h"
#include "io/stored_dtype.h"
#include "kernels/runtime/runtime.h"
#include "kernels/runtime/transfer.h"

namespace weft::dist {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPoll{20};
/// A folder that is untouched for so long counts as left by a crash.
constexpr std::chrono::minutes kAbandonedAfter{10};

fs::path note_path(const fs::path& folder, int rank) { return folder / str("rank_", rank, ".note"); }
fs::path list_path(const fs::path& folder, int rank) { return folder / str("rank_", rank, ".list"); }

std::string random_id() {
  std::random_device source;
  char text[20];
  std::snprintf(text, sizeof text, "%08x%08x", source(), source());
  return text;
}

void force_to_disk(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  static_cast<void>(::fsync(fd));  // some network file systems cannot; the rename itself has succeeded
  ::close(fd);
}

/// Renames the finished folder to its name. The last `keep` - 1 folders before it stay (kept_file()).
void publish(const fs::path& temporary, const fs::path& folder, int keep) {
  std::error_code ignored;
  if (keep > 1 && fs::exists(folder, ignored)) {
    fs::remove_all(kept_file(folder, keep - 1), ignored);
    for (int age = keep - 1; age > 0; --age) fs::rename(kept_file(folder, age - 1), kept_file(folder, age), ignored);
  }
  if (!fs::exists(folder, ignored)) {
    fs::rename(temporary, folder);
  } else if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(temporary, ignored);
  } else {  // the file system cannot exchange names: two steps
    const fs::path old = temporary.string() + ".old";
    fs::rename(folder, old);
    fs::rename(temporary, folder);
    fs::remove_all(old, ignored);
  }
  force_to_disk(folder.has_parent_path() ? folder.parent_path() : fs::path("."));
}

fs::path parent_of(const fs::path& folder) { return folder.has_parent_path() ? folder.parent_path() : fs::path("."); }

/// Removes what crashed saves of this folder left.
void remove_abandoned(const fs::path& folder) {
  const std::string start = "." + folder.filename().string() + ".";
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent_of(folder), ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(start) || !name.ends_with(".tmp")) continue;
    const auto age = fs::file_time_type::clock::now() - entry.last_write_time(ignored);
    if (!ignored && age > kAbandonedAfter) fs::remove_all(entry.path(), ignored);
  }
}

/// A file that several processes write.
class SharedFile {
 public:
  /// `shown`: its name in errors.
  SharedFile(const fs::path& path, std::string shown)
      : shown_(std::move(shown)),
        work_("writing " + shown_),
        opened_(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666)) {
    if (opened_.fd < 0) fail_write();
  }
  void write(uint64_t offset, const void* from, uint64_t bytes) const {
    const auto* next = static_cast<const char*>(from);
    while (bytes > 0) {
      const ssize_t wrote = ::pwrite(opened_.fd, next, bytes, static_cast<off_t>(offset));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) fail_write();
      next += wrote, offset += static_cast<uint64_t>(wrote), bytes -= static_cast<uint64_t>(wrote);
    }
  }
  void force_to_disk() const {
    if (::fsync(opened_.fd) != 0) fail_write();
  }

 private:
  [[noreturn]] void fail_write() const {
    fail("expected to write ", shown_, ", got '", std::strerror(errno), "'. An older checkpoint stays as it was");
  }

  std::string shown_;
  DiskWork work_;
  Descriptor opened_;
};

void insert_new(std::vector<std::pair<std::string, CheckpointIndex::Part>>& to, const RankNote& note) {
  for (const auto& [name, part] : note.parts) {
    if (part.tensors.empty()) continue;
    const auto own = std::ranges::find(to, name, &std::pair<std::string, CheckpointIndex::Part>::first);
    WEFT_CHECK(own != to.end(), "expected the same parts on all ranks, got '", name, "' on one");
    std::unordered_set<std::string> listed;
    for (const CheckpointIndex::Entry& entry : own->second.tensors) listed.insert(entry.name);
    for (const CheckpointIndex::Entry& entry : part.tensors)
      if (listed.insert(entry.name).second) own->second.tensors.push_back(entry);
  }
}

}  // namespace

/// The thread of the last save, and the members that both threads use.
struct CheckpointWriter::Background {
  std::atomic<bool> gives_up{false};
  std::thread thread;
  std::future<std::string> wrote;  // error of writing this rank's own part
  std::string error;
};

/// The thread's data of one save.
struct CheckpointWriter::Job {
  fs::path folder, temporary;
  int rank = 0, size = 0, keep = 1;
  std::vector<int> together;  // ranks of this rank's file
  std::vector<int> files;     // first ranks of all files
  Milliseconds timeout{};
  const std::atomic<bool>* gives_up = nullptr;  // the writer's
  CheckpointIndex index;  // rank 0: the notes, and the tensors that it knows; others: tensors whose start they have
  std::vector<std::pair<CheckpointIndex::Piece, Tensor>> pieces;  // in the arena
  std::vector<Tensor> sources;                                    // stay until they have been copied
  std::unique_ptr<Event> copied;
  std::promise<std::string> wrote;  // error of write_own(); "": none

  bool is_first_of_file() const { return rank == together.front(); }
  fs::path own_file() const { return temporary / CheckpointIndex::file_name(together.front()); }
  void run();
  void write_own();
  void finish_file(RankNote& own);
  void finish();
  std::string await(const fs::path& path, int of) const;
  RankNote await_note(int of) const;
};

void CheckpointWriter::Job::run() {
  RankNote note;
  try {
    if (copied) copied->synchronize();
    sources.clear();
    write_own();
  } catch (const std::exception& error) {
    note.error = error.what();
    std::error_code ignored;
    fs::remove(own_file(), ignored);  // makes room for the note
  }
  wrote.set_value(note.error);
  try {
    if (note.error.empty()) finish_file(note);
  } catch (const std::exception& error) {
    note.error = error.what();
  }
  try {
    if (rank != 0 || !note.error.empty())
      write_atomically(note_path(temporary, rank), note_text(note), "sharded checkpoint");
  } catch (const std::exception& error) {
    if (note.error.empty()) note.error = error.what();
    const std::ofstream empty(note_path(temporary, rank));  // a full disk has room for a name
  }
  if (!note.error.empty()) fail(note.error);
  if (rank == 0) finish();
}

/// Each rank knows all tensors of its file, and so the place of its own.
void CheckpointWriter::Job::write_own() {
  RankNote own;
  own.parts.resize(1);
  for (const auto& [piece, values] : pieces)
    own.parts[0].second.tensors.push_back({piece.stored_name(), values.dtype(), {values.numel()}});
  if (together.size() > 1) write_atomically(list_path(temporary, rank), note_text(own), "sharded checkpoint");
  std::vector<SafetensorsTensor> all;
  uint64_t at = 0;
  for (const int other : together) {
    if (other == rank)
      for (const SafetensorsTensor& before : all) at += before.bytes;
    const RankNote list = other == rank ? own : read_note(await(list_path(temporary, other), other));
    for (const CheckpointIndex::Entry& entry : list.parts.at(0).second.tensors)
      all.push_back({entry.name,
                     std::string(stored_name(entry.dtype)),
                     {entry.sizes.numel()},
                     static_cast<uint64_t>(entry.sizes.numel()) * size_of(entry.dtype)});
  }
  const std::string header =
      safetensors_header(all, {{"checkpoint", index.id}, {"rank", str(together.front())}, {"world_size", str(size)}});
  const SharedFile file(own_file(), str(own_file().filename().string(), " of ", folder.string()));
  if (is_first_of_file()) file.write(0, header.data(), header.size());
  at += header.size();
  for (const auto& [piece, values] : pieces) {
    file.write(at, values.raw_data(), values.nbytes());
    at += values.nbytes();
  }
  file.force_to_disk();
}

/// Waits until the others of the file have written, where this is its first rank.
void CheckpointWriter::Job::finish_file(RankNote& own) {
  std::vector<CheckpointIndex::Piece> all;
  for (const auto& [piece, values] : pieces) all.push_back(piece);
  std::error_code ignored;
  for (const int other : together) {
    if (other == rank || !is_first_of_file()) continue;
    const RankNote note = await_note(other);
    all.insert(all.end(), note.file.pieces.begin(), note.file.pieces.end());
    insert_new(index.parts, note);
    fs::remove(note_path(temporary, other), ignored);
  }
  if (is_first_of_file()) {
    for (const int other : together) fs::remove(list_path(temporary, other), ignored);  // all have read all of them
    const DiskWork work("reading " + own_file().string());
    own.file = sums_of(own_file());
  }
  own.file.pieces = std::move(all);
  if (static_cast<int>(files.size()) < size) own.file.rank = rank;
  own.parts = index.parts;
  if (rank == 0) index.files.push_back(own.file);
}

std::string CheckpointWriter::Job::await(const fs::path& path, int of) const {
  const Clock::time_point deadline = Clock::now() + timeout;
  for (;; std::this_thread::sleep_for(kPoll)) {
    std::error_code ignored;
    if (fs::exists(path, ignored)) return read_text(path, "sharded checkpoint");
    if (fs::exists(note_path(temporary, of), ignored)) await_note(of);  // it has failed
    WEFT_CHECK(!*gives_up, "rank ", of, "'s file was not waited for");
    WEFT_CHECK(Clock::now() < deadline, "rank ", of, "'s file did not appear within ",
               std::chrono::duration<double>(timeout).count(), " s. Do all ranks see the same file system?");
  }
}

RankNote CheckpointWriter::Job::await_note(int of) const {
  RankNote note = read_note(await(note_path(temporary, of), of));
  WEFT_CHECK(note.error.empty(), "rank ", of, " failed: ", note.error);
  return note;
}

void CheckpointWriter::Job::finish() {
  std::error_code ignored;
  for (const int first : files) {
    if (first == 0) continue;
    RankNote note = await_note(first);
    insert_new(index.parts, note);
    index.files.push_back(std::move(note.file));
    fs::remove(note_path(temporary, first), ignored);
  }
  write_index(temporary, index);
  publish(temporary, folder, keep);
}

CheckpointWriter::CheckpointWriter(ProcessGroupPtr group, Milliseconds timeout, std::string host)
    : group_(std::move(group)),
      timeout_(timeout),
      host_(std::move(host)),
      background_(std::make_unique<Background>()) {
  WEFT_CHECK(group_, "sharded checkpoint: expected a group, got none");
}

CheckpointWriter::~CheckpointWriter() {
  background_->gives_up = std::uncaught_exceptions() > 0;
  if (background_->thread.joinable()) background_->thread.join();
}

void CheckpointWriter::save(const fs::path& folder, std::vector<std::pair<std::string, ShardedState>> parts,
                            std::map<std::string, std::string> facts) {
  Checkpoint notes;
  notes.texts = std::move(facts);
  save(folder, std::move(parts), notes, /*keep=*/1);
}

void CheckpointWriter::save(const fs::path& folder, std::vector<std::pair<std::string, ShardedState>> parts,
                            const Checkpoint& notes, int keep, const std::function<void(const fs::path&)>& add) {
  wait();
  const NoGrad no_grad;
  auto job = std::make_shared<Job>();
  job->rank = group_->rank();
  job->size = group_->size();
  job->timeout = timeout_;
  job->gives_up = &background_->gives_up;
  job->folder = folder.has_filename() ? folder : folder.parent_path();
  std::error_code error;
  std::string problem;
  if (job->folder.empty() || !fs::is_directory(parent_of(job->folder), error))
    problem =
        str("expected an existing folder for ", folder.string(), ", got none at ", parent_of(job->folder).string());
  const std::string host = host_.empty() ? str("rank ", job->rank) : host_, id = random_id();
  const std::string place = fs::absolute(job->folder, error).lexically_normal().string();
  const std::vector<std::string> told = group_->all_gather_text(
      problem.empty() ? str('+', job->rank == 0 ? id : "", ' ', host, '\0', place) : problem, "checkpoint");
  std::unordered_set<std::string_view> hosts;
  for (int rank = 0; rank < job->size; ++rank) {
    const std::string_view text = told[static_cast<size_t>(rank)];
    WEFT_CHECK(text.starts_with('+'), "sharded checkpoint: rank ", rank, ": ", text);
    const size_t end = text.find('\0');
    const std::string_view first = told[0], other = text.substr(end + 1);
    WEFT_CHECK(other == first.substr(first.find('\0') + 1),
               "sharded checkpoint: expected one folder on all ranks, got ", first.substr(first.find('\0') + 1),
               " on rank 0 and ", other, " on rank ", rank);
    const std::string_view of_rank = text.substr(0, end).substr(text.find(' ') + 1);
    if (hosts.insert(of_rank).second) job->files.push_back(rank);
    if (of_rank == host) job->together.push_back(rank);
  }
  const auto writer = static_cast<int>(std::ranges::find(job->together, job->rank) - job->together.begin());
  job->index.id = told[0].substr(1, told[0].find(' ') - 1);
  job->index.integers = notes.integers;
  job->index.numbers = notes.numbers;
  job->index.texts = notes.texts;
  job->keep = keep;
  job->temporary = parent_of(job->folder) / str('.', job->folder.filename().string(), '.', job->index.id, ".tmp");
  if (job->rank == 0) remove_abandoned(job->folder);
  fs::create_directories(job->temporary, error);
  temporary_ = job->temporary;
  if (add && job->rank == 0) add(job->temporary);

  Device device;
  size_t bytes = 0;
  for (const auto& [part, state] : parts)
    for (const TensorPiece& piece : state.pieces) {
      if (piece.values.device().kind != DeviceKind::cpu) device = piece.values.device();
      if (!piece.is_copy) bytes += (piece.values.nbytes() + 63) / 64 * 64;
    }
  if (arena_.kind() != device.kind) arena_ = kernels::PinnedMemory(device.kind);
  std::byte* const arena = arena_.at_least(bytes, "sharded checkpoint");
  size_t end = 0;
  for (auto& [part, state] : parts) {
    CheckpointIndex::Part& listed =
        job->index.parts.emplace_back(part, CheckpointIndex::Part{{}, state.scalars}).second;
    for (const TensorPiece& piece : state.pieces) {
      const bool has_start = !piece.is_copy && piece.of.place(piece.begin) == 0;
      if (job->rank == 0 || (has_start && (piece.values.numel() > 0 || piece.sizes.numel() == 0)))
        listed.tensors.push_back({piece.name, piece.values.dtype(), piece.sizes, piece.layout == nn::Layout::ohwi});
      if (piece.is_copy || piece.values.numel() == 0) continue;
      const Tensor copy = Tensor::wrap(arena + end, {piece.values.numel()}, piece.values.dtype(), Device{});
      end += (piece.values.nbytes() + 63) / 64 * 64;
      const Tensor source = piece.values.contiguous();
      const Device at = source.device().kind == DeviceKind::cpu ? source.device() : device;
      kernels::transfer(current_queue(at), "snapshot", copy.raw_data(), source.raw_data(), source.nbytes());
      job->sources.push_back(source);
      job->pieces.emplace_back(
          CheckpointIndex::Piece{part, piece.name, piece.begin, piece.values.numel(), piece.of, writer}, copy);
    }
  }
  std::ranges::stable_sort(job->pieces, {}, [](const auto& piece) {  // wide elements first, which aligns all
    return std::pair(-static_cast<int>(size_of(piece.second.dtype())), piece.first.part + '/' + piece.first.name);
  });
  if (device.kind == DeviceKind::cuda) {  // later work on this stream runs after the copies
    job->copied = std::make_unique<Event>(device);
    job->copied->record(current_stream(device));
  } else {
    synchronize(device);
  }
  pending_ = true;
  background_->error.clear();
  background_->wrote = job->wrote.get_future();
  background_->thread = std::thread([this, job] {
    try {
      job->run();
    } catch (const std::exception& failure) {
      background_->error = failure.what();
    }
  });
}

void CheckpointWriter::wait() {
  if (!std::exchange(pending_, false)) {
    if (background_->thread.joinable()) background_->thread.join();  // ranks of its save did not all answer
    return;
  }
  // Ranks of one file wait for each other's lists: who has died, or failed in save(), is known before. Two more rounds:
  // a rank that could not write, or has died, is known before others wait for its file.
  group_->all_gather_text("", "checkpoint begun");
  std::vector<std::string> errors = group_->all_gather_text(background_->wrote.get(), "checkpoint's files");
  background_->gives_up = !std::ranges::all_of(errors, &std::string::empty);
  background_->thread.join();
  const std::vector<std::string> later = group_->all_gather_text(background_->error, "checkpoint written");
  if (!background_->gives_up.exchange(false)) errors = later;
  for (size_t rank = errors.size(); rank-- > 0;) {  // ranks that waited for another have smaller numbers
    if (errors[rank].empty()) continue;
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);  // no rank writes there any more
    fail("sharded checkpoint: rank ", rank, ": ", errors[rank]);
  }
}

}  // namespace weft::dist
