// SPDX-License-Identifier: Apache-2.0
#include "dist/group/collective.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace weft::dist {
namespace {

uint64_t mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 32);
}

uint64_t hash_of(std::string_view text) {
  uint64_t hash = text.size();
  for (const char c : text) hash = mixed(hash, static_cast<unsigned char>(c));
  return hash;
}

CollectiveKind side_neutral(CollectiveKind kind) {
  return kind == CollectiveKind::receive ? CollectiveKind::send : kind;
}

/// Elements of all parts where they differ. Each rank of an all_to_all has its own parts, which are compared by pairs.
int64_t count_of(const Collective& c) {
  if (c.parts.empty() || !c.input_parts.empty()) return c.tensor().numel();
  return std::accumulate(c.parts.begin(), c.parts.end(), int64_t{0});
}

std::string describe(const Signature& s) {
  std::string text = str(name(s.kind), " '", s.name.data(), "'");
  if (s.kind == CollectiveKind::barrier || s.kind == CollectiveKind::monitored_barrier) return text;
  text += str(' ', s.dtype, '[', s.count < 0 ? "…" : std::to_string(s.count), ']');
  if (s.op != ReduceOp::sum) text += str(" (", name(s.op), ')');
  const bool to_root = s.kind == CollectiveKind::reduce || s.kind == CollectiveKind::gather;
  if (s.root >= 0) text += str(to_root ? " to rank " : " from rank ", s.root);
  return text;
}

}  // namespace

const char* name(CollectiveKind kind) {
  constexpr const char* names[] = {"all_reduce", "broadcast", "all_gather", "reduce_scatter",
                                   "barrier",    "send",      "receive",    "reduce",
                                   "gather",     "scatter",   "all_to_all", "monitored_barrier"};
  return names[static_cast<int>(kind)];
}

std::string describe(const Collective& collective) {
  // Each collective is described for the flight log, so no streams here.
  std::string text = name(collective.kind);
  text.append(" #").append(std::to_string(collective.number));
  if (!collective.name.empty()) text.append(" '").append(collective.name).append("'");
  if (const Tensor& tensor = collective.tensor(); tensor.defined())
    text.append(" ").append(name(tensor.dtype())).append("[").append(std::to_string(count_of(collective))).append("]");
  if (collective.kind == CollectiveKind::send) text.append(" to rank ").append(std::to_string(collective.peer));
  if (collective.kind == CollectiveKind::receive) text.append(" from rank ").append(std::to_string(collective.peer));
  return text;
}

uint64_t bytes_to_send(const Collective& collective, int rank, int size) {
  const auto others = static_cast<uint64_t>(size - 1);
  const auto bytes = [](const Tensor& tensor) { return static_cast<uint64_t>(tensor.nbytes()); };
  switch (collective.kind) {
    case CollectiveKind::all_reduce:
      return 2 * others * bytes(collective.output) / static_cast<uint64_t>(size);
    case CollectiveKind::broadcast: {
      uint64_t children = 0;
      const int place = (rank - collective.peer + size) % size;
      for (int step = 1; step < size && (place & step) == 0; step *= 2) children += place + step < size;
      return children * bytes(collective.output);
    }
    case CollectiveKind::all_gather:
      return others * bytes(collective.input);
    case CollectiveKind::reduce_scatter:
      return bytes(collective.input) - bytes(collective.output);
    case CollectiveKind::send:
      return bytes(collective.output);
    case CollectiveKind::reduce:
    case CollectiveKind::gather:
      return rank == collective.peer ? 0 : bytes(collective.tensor());
    case CollectiveKind::scatter:
      return rank == collective.peer ? bytes(collective.input) - bytes(collective.output) : 0;
    case CollectiveKind::all_to_all: {
      const auto count = static_cast<size_t>(collective.input.numel() / size);
      const PartRange own = part_range(collective.input_parts, count, rank);
      return bytes(collective.input) - (own.end - own.begin) * size_of(collective.input.dtype());
    }
    case CollectiveKind::barrier:
    case CollectiveKind::monitored_barrier:
    case CollectiveKind::receive:
      break;
  }
  return 0;
}

PartRange part_range(const std::vector<int64_t>& parts, size_t count, int rank) {
  const auto r = static_cast<size_t>(rank);
  if (parts.empty()) return {r * count, (r + 1) * count};
  const auto begin = static_cast<size_t>(std::accumulate(parts.begin(), parts.begin() + rank, int64_t{0}));
  return {begin, begin + static_cast<size_t>(parts[r])};
}

bool Signature::agrees(const Signature& other) const {
  return number == other.number && name_hash == other.name_hash && count == other.count && root == other.root &&
         side_neutral(kind) == side_neutral(other.kind) && dtype == other.dtype && op == other.op &&
         library == other.library;
}

uint64_t Signature::hash() const {
  uint64_t hash = mixed(number, name_hash);
  hash = mixed(hash, static_cast<uint64_t>(count));
  hash = mixed(hash, static_cast<uint32_t>(root));
  return mixed(hash, static_cast<uint64_t>(side_neutral(kind)) << 16 | static_cast<uint64_t>(dtype) << 8 |
                         static_cast<uint64_t>(op));
}

Signature signature_of(const Collective& collective, int rank) {
  Signature s;
  s.number = collective.number;
  std::string name = collective.name;
  if (collective.input_parts.empty() && !collective.parts.empty()) {
    name += " (parts of";
    for (const int64_t part : collective.parts) name += ' ' + std::to_string(part);
    name += ')';
  }
  s.name_hash = hash_of(name);
  s.rank = rank;
  s.kind = collective.kind;
  s.op = collective.op;
  if (collective.has_root()) s.root = collective.peer;
  if (collective.tensor().defined()) {
    s.count = collective.input_parts.empty() ? count_of(collective) : -1;
    s.dtype = collective.tensor().dtype();
  }
  const size_t kept = std::min(name.size(), s.name.size() - 1);
  std::copy_n(name.begin(), kept, s.name.begin());
  return s;
}

std::string describe_difference(const Signature& a, const Signature& b, const std::string& group) {
  const Signature& first = a.rank < b.rank ? a : b;
  const Signature& second = a.rank < b.rank ? b : a;
  const bool message = a.kind == CollectiveKind::send || a.kind == CollectiveKind::receive;
  const auto call = [&](const Signature& s) {
    return describe(s) + (a.library == b.library ? ""
                          : s.library            ? " (WEFT_COLLECTIVES=library)"
                                                 : " (WEFT_COLLECTIVES=own)");
  };
  return str("rank ", first.rank, " called ", call(first), ", rank ", second.rank, " called ", call(second), " as ",
             message ? "message " : "collective ", a.number, " of group ", group,
             ". All ranks must make the same calls in the same order");
}

}  // namespace weft::dist
