// SPDX-License-Identifier: Apache-2.0
#include "dist/group/process_group.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <sstream>
#include <tuple>
#include <utility>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "dist/group/backends.h"
#include "dist/group/group_record.h"

namespace weft::dist {
namespace {

Collective made(CollectiveKind kind, const CollectiveOptions& options, const Tensor& output, const Tensor& input = {},
                int peer = -1) {
  const bool takes_rows = kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter ||
                          kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
  WEFT_CHECK(takes_rows || options.rows.empty(), name(kind),
             ": rows belong to all_gather, reduce_scatter, gather and scatter");
  return {.kind = kind,
          .name = options.name,
          .output = output,
          .input = input,
          .scale = options.scale,
          .at_once = options.at_once,
          .after = options.after,
          .peer = peer};
}

/// `all_reduce 'fc.bias' on rank 1`: how errors about arguments begin.
std::string called(const Collective& c, int rank) {
  return str(name(c.kind), c.name.empty() ? "" : " '" + c.name + "'", " on rank ", rank);
}

void check_tensor(const Collective& c, const Tensor& tensor, const char* which, int rank) {
  WEFT_CHECK(tensor.defined(), called(c, rank), ": expected a tensor as ", which, ", got none");
  WEFT_CHECK(tensor.is_contiguous(), called(c, rank), ": expected a contiguous ", which, ", got ", tensor,
             " with other strides. Call contiguous()");
  WEFT_CHECK(tensor.storage()->has_memory(), called(c, rank), ": ", which, ' ', tensor,
             " has no memory now. A sharded parameter has it only while its unit runs");
  WEFT_CHECK(tensor.dtype() != DType::boolean, called(c, rank), ": cannot send bool, got ", tensor, ". Convert to u8");
}

void check_scale(const Collective& c, int rank) {
  const Tensor& tensor = c.tensor();
  WEFT_CHECK(c.op != ReduceOp::avg || tensor.is_floating(), called(c, rank), ": avg: expected a floating tensor, got ",
             tensor, ". Use sum");
  if (!c.scale.defined()) return;
  WEFT_CHECK(c.kind == CollectiveKind::all_reduce || c.kind == CollectiveKind::reduce_scatter, called(c, rank),
             ": scale belongs to all_reduce and reduce_scatter");
  WEFT_CHECK(c.op == ReduceOp::sum, called(c, rank), ": scale goes with sum, got ", name(c.op));
  WEFT_CHECK(tensor.is_floating(), called(c, rank), ": scale: expected a floating tensor, got ", tensor);
  const bool is_double = tensor.dtype() == DType::f64;
  const bool fits = c.scale.dtype() == DType::f32 || (is_double && c.scale.dtype() == DType::f64);
  WEFT_CHECK(fits && c.scale.numel() == 1 && c.scale.device() == tensor.device(), called(c, rank),
             ": scale: expected f32[1]", is_double ? " or f64[1]" : "", " on ", tensor.device(), ", got ", c.scale);
}

void check_root(const Collective& c, int rank, int size) {
  WEFT_CHECK(c.peer >= 0 && c.peer < size, called(c, rank), ": root: expected 0 to ", size - 1, ", got ", c.peer);
}

std::string text_of(const std::vector<int64_t>& rows) {
  std::string text;
  for (const int64_t n : rows) text += (text.empty() ? "" : ", ") + std::to_string(n);
  return text;
}

/// Elements of a row.
int64_t row_of(const Tensor& tensor) {
  int64_t elements = 1;
  for (int d = 1; d < tensor.dim(); ++d) elements *= tensor.size(d);
  return elements;
}

/// Rows per rank as elements per rank.
std::vector<int64_t> elements_of(const Collective& c, const Tensor& tensor, const std::vector<int64_t>& rows,
                                 const char* which, int rank, int size) {
  WEFT_CHECK(static_cast<int>(rows.size()) == size && std::ranges::all_of(rows, [](int64_t n) { return n >= 0; }),
             called(c, rank), ": rows: expected ", size, " numbers of at least 0, got {", text_of(rows), '}');
  WEFT_CHECK(tensor.dim() > 0, called(c, rank), ": rows: expected a dimension, got ", which, ' ', tensor);
  std::vector<int64_t> elements;
  for (const int64_t n : rows) elements.push_back(n * row_of(tensor));
  return elements;
}

void check_sum(const Collective& c, const Tensor& tensor, const std::vector<int64_t>& rows, const char* which,
               int rank) {
  WEFT_CHECK(tensor.size(0) == std::accumulate(rows.begin(), rows.end(), int64_t{0}), called(c, rank), ": ", which, ' ',
             tensor, ": expected as many rows as {", text_of(rows), "} together");
}

void check_same_kind(const Collective& c, int rank) {
  WEFT_CHECK(c.output.dtype() == c.input.dtype() && c.output.device() == c.input.device(), called(c, rank), ": output ",
             c.output, " and input ", c.input, ": expected one dtype and one device");
}

/// `large` holds one part per rank, `small` is this rank's. `large` is undefined where only the root has it.
void check_parts(Collective& c, const Tensor& large, const Tensor& small, const std::vector<int64_t>& rows, int rank,
                 int size) {
  const char* const names[] = {"output", "input"};
  const bool gather = c.kind == CollectiveKind::all_gather || c.kind == CollectiveKind::gather;
  const bool has_large = !c.has_root() || c.peer == rank;
  for (const bool input : {false, true})
    if (has_large || input == gather) check_tensor(c, input ? c.input : c.output, names[input], rank);
  WEFT_CHECK(has_large || !large.defined(), called(c, rank), ": expected ", names[!gather], " on the root ", c.peer,
             " alone, got ", large);
  if (has_large) check_same_kind(c, rank);
  if (rows.empty()) {
    WEFT_CHECK(!has_large || large.numel() == size * small.numel(), called(c, rank), ": ", names[!gather], ' ', large,
               ": expected ", size, " times the elements of ", names[gather], ' ', small);
    return;
  }
  c.parts = elements_of(c, small, rows, names[gather], rank, size);
  WEFT_CHECK(small.size(0) == rows[static_cast<size_t>(rank)], called(c, rank), ": ", names[gather], ' ', small,
             ": expected ", rows[static_cast<size_t>(rank)], " rows, as {", text_of(rows), "} says");
  if (std::ranges::count(rows, rows.front()) == size) c.parts.clear();  // equal parts, which nccl has calls for
  if (!has_large) return;
  check_sum(c, large, rows, names[!gather], rank);
  WEFT_CHECK(row_of(large) == row_of(small), called(c, rank), ": output ", c.output, " and input ", c.input,
             ": expected rows of one size");
}

bool overlap(const Tensor& a, const Tensor& b) {
  const auto *const first = static_cast<const std::byte*>(a.raw_data()), *const second = static_cast<const std::byte*>(
                                                                             b.raw_data());
  return first < second + b.nbytes() && second < first + a.nbytes();
}

/// An input in the output's memory must be this rank's part of it: the others are written before all ranks have read.
void check_own_part(const Collective& c, int rank) {
  if (!overlap(c.output, c.input)) return;
  const int64_t before =
      c.parts.empty() ? rank * c.input.numel() : std::accumulate(c.parts.begin(), c.parts.begin() + rank, int64_t{0});
  const auto* const own =
      static_cast<const std::byte*>(c.output.raw_data()) + before * static_cast<int64_t>(size_of(c.output.dtype()));
  WEFT_CHECK(c.input.raw_data() == own, called(c, rank), ": input ", c.input,
             " lies in output's memory: expected this rank's part there, or memory of its own");
}

void check_exchange(const Collective& c, int rank) {
  check_tensor(c, c.output, "output", rank);
  check_tensor(c, c.input, "input", rank);
  check_scale(c, rank);
  check_same_kind(c, rank);
  // Output is written before all of the input has been read.
  WEFT_CHECK(!overlap(c.output, c.input), called(c, rank),
             ": output and input: expected memory of their own, got some that they share");
}

}  // namespace

ProcessGroup::ProcessGroup(GroupRecordPtr record)
    : record_(std::move(record)),
      rank_(record_->rank),
      size_(record_->size),
      name_(record_->name),
      sent_(static_cast<size_t>(size_)),
      received_(static_cast<size_t>(size_)) {}

WorkPtr ProcessGroup::submit(Collective c) {
  switch (c.kind) {
    case CollectiveKind::send:
      c.number = ++sent_[static_cast<size_t>(c.peer)];
      break;
    case CollectiveKind::receive:
      c.number = ++received_[static_cast<size_t>(c.peer)];
      break;
    default:
      c.number = next_number();
  }
  record_->check_alive(c);
  ++launches_;
  if (c.after && backend() != "nccl") std::exchange(c.after, nullptr)->wait();
  c.entry = record_->log.add(describe(c));
  return enqueue(std::make_shared<const Collective>(std::move(c)));
}

WorkPtr ProcessGroup::all_reduce(const Tensor& tensor, ReduceOp op, const CollectiveOptions& options) {
  Collective c = made(CollectiveKind::all_reduce, options, tensor);
  c.op = op;
  check_tensor(c, tensor, "tensor", rank_);
  check_scale(c, rank_);
  return submit(std::move(c));
}

WorkPtr ProcessGroup::broadcast(const Tensor& tensor, int root, const CollectiveOptions& options) {
  const Collective c = made(CollectiveKind::broadcast, options, tensor, {}, root);
  check_tensor(c, tensor, "tensor", rank_);
  check_scale(c, rank_);
  check_root(c, rank_, size_);
  return submit(c);
}

WorkPtr ProcessGroup::reduce(const Tensor& tensor, int root, ReduceOp op, const CollectiveOptions& options) {
  Collective c = made(CollectiveKind::reduce, options, tensor, {}, root);
  c.op = op;
  check_tensor(c, tensor, "tensor", rank_);
  check_scale(c, rank_);
  check_root(c, rank_, size_);
  return submit(std::move(c));
}

WorkPtr ProcessGroup::all_gather(const Tensor& output, const Tensor& input, const CollectiveOptions& options) {
  Collective c = made(CollectiveKind::all_gather, options, output, input);
  check_parts(c, output, input, options.rows, rank_, size_);
  check_scale(c, rank_);
  check_own_part(c, rank_);
  return submit(std::move(c));
}

WorkPtr ProcessGroup::gather(const Tensor& output, const Tensor& input, int root, const CollectiveOptions& options) {
  Collective c = made(CollectiveKind::gather, options, output, input, root);
  check_root(c, rank_, size_);
  check_parts(c, output, input, options.rows, rank_, size_);
  check_scale(c, rank_);
  return submit(std::move(c));
}

WorkPtr ProcessGroup::scatter(const Tensor& output, const Tensor& input, int root, const CollectiveOptions& options) {
  Collective c = made(CollectiveKind::scatter, options, output, input, root);
  check_root(c, rank_, size_);
  check_parts(c, input, output, options.rows, rank_, size_);
  check_scale(c, rank_);
  return submit(std::move(c));
}

WorkPtr ProcessGroup::all_to_all(const Tensor& output, const Tensor& input, const CollectiveOptions& options) {
  const Collective c = made(CollectiveKind::all_to_all, options, output, input);
  check_exchange(c, rank_);
  WEFT_CHECK(output.numel() == input.numel() && input.numel() % size_ == 0, called(c, rank_), ": output ", output,
             " and input ", input, ": expected the same number of elements, divisible by ", size_);
  return submit(c);
}

WorkPtr ProcessGroup::all_to_all(const Tensor& output, const Tensor& input, const std::vector<int64_t>& output_rows,
                                 const std::vector<int64_t>& input_rows, const CollectiveOptions& options) {
  Collective c = made(CollectiveKind::all_to_all, options, output, input);
  check_exchange(c, rank_);
  c.parts = elements_of(c, output, output_rows, "output", rank_, size_);
  c.input_parts = elements_of(c, input, input_rows, "input", rank_, size_);
  check_sum(c, output, output_rows, "output", rank_);
  check_sum(c, input, input_rows, "input", rank_);
  const auto own = static_cast<size_t>(rank_);
  WEFT_CHECK(row_of(output) == row_of(input) && output_rows[own] == input_rows[own], called(c, rank_), ": output ",
             output, " and input ", input, ": expected rows of one size, and as many for this rank as from it");
  return submit(std::move(c));
}

WorkPtr ProcessGroup::reduce_scatter(const Tensor& output, const Tensor& input, ReduceOp op,
                                     const CollectiveOptions& options) {
  Collective c = made(CollectiveKind::reduce_scatter, options, output, input);
  c.op = op;
  check_parts(c, input, output, options.rows, rank_, size_);
  check_scale(c, rank_);
  return submit(std::move(c));
}

void ProcessGroup::monitored_barrier(Milliseconds timeout, const std::string& what) {
  Collective c{.kind = CollectiveKind::monitored_barrier, .name = what, .at_once = true};
  c.timeout = timeout;
  WEFT_CHECK(timeout.count() > 0, called(c, rank_), ": expected a timeout above 0, got ", timeout.count(), " ms");
  submit(std::move(c))->wait();
}

void ProcessGroup::barrier(const std::string& what) {
  submit({.kind = CollectiveKind::barrier, .name = what, .at_once = true})->wait();
}

WorkPtr ProcessGroup::send(const Tensor& tensor, int to, const CollectiveOptions& options) {
  return submit_message(made(CollectiveKind::send, options, tensor, {}, to));
}

WorkPtr ProcessGroup::receive(const Tensor& tensor, int from, const CollectiveOptions& options) {
  return submit_message(made(CollectiveKind::receive, options, tensor, {}, from));
}

WorkPtr ProcessGroup::submit_message(const Collective& c) {
  check_tensor(c, c.output, "tensor", rank_);
  check_scale(c, rank_);
  WEFT_CHECK(c.peer >= 0 && c.peer < size_ && c.peer != rank_, called(c, rank_), ": expected another rank of 0 to ",
             size_ - 1, ", got ", c.peer);
  return submit(c);
}

void ProcessGroup::together(const std::function<void()>& calls) {
  WEFT_CHECK(calls, "together: expected a function, got none");
  const uint64_t before = launches_;
  const bool held = hold();
  const auto end = [&] {
    if (!held) return;
    launches_ = std::min(launches_, before + 1);
    release();
  };
  try {
    calls();
  } catch (...) {
    end();
    throw;
  }
  end();
}

std::vector<std::string> ProcessGroup::all_gather_text(const std::string& text, const std::string& what) {
  const Device device = text_device();
  const Tensor lengths = Tensor::empty({size_}, DType::i64, device);
  WorkPtr work = all_gather(lengths, Tensor::from<int64_t>({static_cast<int64_t>(text.size())}, device),
                            {.name = what + " (lengths)", .scale = {}, .at_once = true});
  work->wait();
  const std::vector<int64_t> length = lengths.to_vector<int64_t>();
  work->wait();  // on a GPU the end comes only now, perhaps with an error
  const int64_t longest = *std::ranges::max_element(length);

  std::vector<uint8_t> padded(text.begin(), text.end());
  padded.resize(static_cast<size_t>(longest));
  const Tensor texts = Tensor::empty({size_, longest}, DType::u8, device);
  work = all_gather(texts, Tensor::from(padded, device), {.name = what, .scale = {}, .at_once = true});
  work->wait();
  const std::vector<uint8_t> bytes = texts.to_vector<uint8_t>();
  work->wait();

  std::vector<std::string> result;
  for (int r = 0; r < size_; ++r) {
    const auto begin = bytes.begin() + r * longest;
    result.emplace_back(begin, begin + length[static_cast<size_t>(r)]);
  }
  return result;
}

std::vector<int> ProcessGroup::members_of_split(int color, int key, const std::string& name) {
  const std::vector<std::string> texts = all_gather_text(str(color, ' ', key), "split " + name);
  std::vector<std::tuple<int, int>> chosen;  // key, rank
  for (int r = 0; r < size_; ++r) {
    std::istringstream text(texts[static_cast<size_t>(r)]);
    int its_color = -1, its_key = 0;
    text >> its_color >> its_key;
    if (color >= 0 && its_color == color) chosen.emplace_back(its_key, r);
  }
  std::ranges::sort(chosen);
  std::vector<int> members;
  for (const auto& [its_key, rank] : chosen) members.push_back(rank);
  return members;
}

std::vector<int> ProcessGroup::others() const {
  std::vector<int> ranks = record_->members;
  ranks.erase(ranks.begin() + rank_);
  return ranks;
}

uint64_t ProcessGroup::bytes_sent() const { return record_->bytes_sent; }
double ProcessGroup::seconds_in_collectives() const { return 1e-9 * static_cast<double>(*record_->nanoseconds); }
std::string ProcessGroup::flight_log() const { return record_->log.text(); }

bool blocks_device(const ProcessGroup& group) {
  constexpr int kQueues = 32;
  const char* const text = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");  // Weft sets a missing one
  return group.backend() == "nccl" && group.size() > 1 && text && std::strtol(text, nullptr, 10) < kQueues;
}

ProcessGroupPtr make_process_group(const std::string& backend, int rank, int size, std::shared_ptr<Store> store,
                                   std::shared_ptr<Membership> membership, const GroupOptions& options) {
  WEFT_CHECK(size > 0 && rank >= 0 && rank < size, "process group: rank ", rank, " of ", size, " ranks cannot be");
  WEFT_CHECK(backend != "threads", "process group: the ranks of backend threads are made by run_ranks()");
  WEFT_CHECK(backend == "gloo" || backend == "mpi" || backend == "nccl",
             "process group: backend: expected gloo, mpi or nccl, got '", backend, "'");
  auto record = std::make_shared<GroupRecord>("world", rank, size, options, std::move(membership));
  if (backend == "gloo") return make_tcp_group(std::move(record), std::move(store));
  if (backend == "mpi") return make_mpi_group(std::move(record), std::move(store));
  return make_nccl_group(std::move(record), std::move(store));
}

Grid::Grid(ProcessGroupPtr world, int model, int stages) : world_(std::move(world)) {
  WEFT_CHECK(world_, "grid: expected a group, got none");
  const std::string ranks = str(world_->size(), world_->size() == 1 ? " rank" : " ranks");
  WEFT_CHECK(stages > 0 && world_->size() % stages == 0, "grid: ", stages, " stages do not divide ", ranks);
  const int of_stage = world_->size() / stages;
  WEFT_CHECK(model > 0 && of_stage % model == 0, "grid: ", model, " model ranks do not divide ",
             stages == 1 ? ranks : str(of_stage, " ranks of each stage"));
  const int rank = world_->rank(), stage = rank / of_stage;
  model_ = world_->split(rank / model, rank, "model");
  data_ = world_->split(stage * model + rank % model, rank, "data");
  pipe_ = stages == 1 ? make_process_group_alone() : world_->split(rank % of_stage, rank, "pipe");
}

Grid::Grid(ProcessGroupPtr world, ProcessGroupPtr model, ProcessGroupPtr data, ProcessGroupPtr pipe)
    : world_(std::move(world)),
      model_(std::move(model)),
      data_(std::move(data)),
      pipe_(pipe ? std::move(pipe) : make_process_group_alone()) {
  WEFT_CHECK(world_, "grid: expected a group of all ranks, got none");
  WEFT_CHECK(model_, "grid: expected a group of model ranks, got none");
  WEFT_CHECK(data_, "grid: expected a group of data ranks, got none");
  WEFT_CHECK(int64_t{model_->size()} * data_->size() * pipe_->size() <= world_->size(), "grid: ", data_->size(),
             " data x ", model_->size(), " model ranks x ", pipe_->size(), " stages do not fit ", world_->size(),
             world_->size() == 1 ? " rank" : " ranks");
  std::vector<int> seen;
  for (const ProcessGroupPtr& group : {model_, data_, pipe_})
    for (const int rank : group->others()) {
      WEFT_CHECK(std::ranges::find(seen, rank) == seen.end(), "grid: expected groups that share this rank alone, got ",
                 "rank ", rank, " of the job in two of model, data and pipe");
      seen.push_back(rank);
    }
}

namespace {

/// It is done when enqueued: on a GPU, on the caller's own stream.
class DoneWork final : public Work {
 public:
  void wait() override {}
  bool done() override { return true; }
};

class AloneGroup final : public ProcessGroup {
 public:
  explicit AloneGroup(const std::string& name)
      : ProcessGroup(std::make_shared<GroupRecord>(name, 0, 1, GroupOptions{})) {}

  std::string_view backend() const override { return "alone"; }
  ProcessGroupPtr split(int color, int, const std::string& name) override {
    return color < 0 ? nullptr : std::make_shared<AloneGroup>(name);
  }
  void abort(const std::string& reason) override { record_->fail(reason, GroupRecord::Cause::abort); }

 protected:
  WorkPtr enqueue(CollectivePtr c) override {
    const NoGrad guard;
    record_->begin(c);
    if (c->input.defined() && c->input.raw_data() != c->output.raw_data())
      c->output.copy_(c->input.reshape(c->output.sizes()));
    if (c->scale.defined()) c->output.copy_(mul(c->output, c->scale.reshape({})));
    record_->finish(*c, true);
    return std::make_shared<DoneWork>();
  }
};

}  // namespace

ProcessGroupPtr make_process_group_alone() { return std::make_shared<AloneGroup>("world"); }

}  // namespace weft::dist
