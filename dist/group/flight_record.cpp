// SPDX-License-Identifier: Apache-2.0
#include "dist/group/flight_record.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "core/text.h"
#include "dist/rendezvous/tcp_membership.h"
#include "kernels/error.h"

namespace weft::dist {
namespace {

constexpr const char* kRecordTitle = "weft flight record";

/// A line of the log: `  done     all_reduce #412 'fc.bias' f32[1000]  queued 3.1 s ago, ran 12.0 ms`.
struct LoggedCall {
  std::string state, what, times;
  uint64_t number = 0;  ///< 0: a message, which two ranks count
};

struct RankRecord {
  FlightRecord record;
  std::vector<LoggedCall> entries;
};

std::string with_spaces(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : " ") + std::to_string(number);
  return text;
}

LoggedCall parse_entry(const std::string& line) {
  LoggedCall entry;
  std::istringstream words(line);
  words >> entry.state;
  const size_t begin = line.find_first_not_of(' ', line.find(entry.state) + entry.state.size());
  const size_t end = line.rfind("  queued ");
  if (begin == std::string::npos || end == std::string::npos || begin > end) return entry;
  entry.what = line.substr(begin, end - begin);
  entry.times = line.substr(end + 2);
  const size_t mark = entry.what.find(" #");
  if (mark == std::string::npos || entry.what.starts_with("send ") || entry.what.starts_with("receive ")) return entry;
  std::from_chars(entry.what.data() + mark + 2, entry.what.data() + entry.what.size(), entry.number);
  return entry;
}

RankRecord read_record(const std::filesystem::path& path) {
  std::ifstream file(path);
  RankRecord read;
  std::string line;
  WEFT_CHECK(std::getline(file, line) && line == kRecordTitle, "explain: ", path.string(),
             ": expected a flight record, got '", printable(line.substr(0, 100)), "'");
  while (std::getline(file, line)) {
    const size_t space = line.find(' ');
    const std::string key = line.substr(0, space), value = space == std::string::npos ? "" : line.substr(space + 1);
    std::istringstream numbers(value);
    if (key == "group") read.record.group = value;
    if (key == "rank") numbers >> read.record.rank;
    if (key == "failure") read.record.failure = value;
    if (key == "members")
      for (int member; numbers >> member;) read.record.members.push_back(member);
    if (key.empty()) read.entries.push_back(parse_entry(line));
  }
  const auto size = static_cast<int>(read.record.members.size());
  WEFT_CHECK(read.record.rank >= 0 && read.record.rank < size, "explain: ", path.string(), ": expected a rank below ",
             size, ", got ", read.record.rank);
  return read;
}

/// `rank 3`, `ranks 0 to 2, 4`.
std::string named_ranks(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + rank_list(ranks);
}

/// Ranks that say the same, the most of them first.
std::string by_text(const std::map<std::string, std::vector<int>>& said) {
  std::vector<std::pair<std::string, std::vector<int>>> sorted(said.begin(), said.end());
  std::ranges::stable_sort(sorted, std::ranges::greater{}, [](const auto& one) { return one.second.size(); });
  std::string text;
  for (const auto& [what, ranks] : sorted) text += str("    ", named_ranks(ranks), ": ", what, '\n');
  return text;
}

/// Without what ranks may have of their own: the elements of an all_to_all.
std::string common_form(const std::string& what) {
  return what.starts_with("all_to_all ") ? what.substr(0, what.rfind('[')) : what;
}

/// The first collective that ranks call in different forms, of those that are in all logs.
std::string first_difference(const std::vector<const RankRecord*>& ranks) {
  std::map<uint64_t, std::map<std::string, std::vector<int>>> calls;
  uint64_t first = 0;
  for (const RankRecord* read : ranks) {
    uint64_t oldest = 0;
    for (const LoggedCall& entry : read->entries) {
      if (entry.number == 0) continue;
      if (oldest == 0) oldest = entry.number;
      calls[entry.number][common_form(entry.what)].push_back(
          read->record.members[static_cast<size_t>(read->record.rank)]);
    }
    first = std::max(first, oldest);
  }
  for (const auto& [number, said] : calls)
    if (number >= first && said.size() > 1) return str("  they differ first in call #", number, ":\n", by_text(said));
  return "";
}

std::string where_they_stand(const std::vector<const RankRecord*>& ranks) {
  std::map<std::string, std::vector<int>> last;
  uint64_t most = 0;
  std::map<uint64_t, std::vector<int>> called;
  for (const RankRecord* read : ranks) {
    const int rank = read->record.members[static_cast<size_t>(read->record.rank)];
    uint64_t number = 0;
    for (const LoggedCall& entry : read->entries) number = std::max(number, entry.number);
    most = std::max(most, number);
    called[number].push_back(rank);
    const auto open = std::ranges::find_if(read->entries, [](const LoggedCall& e) { return e.state != "done"; });
    const LoggedCall* entry = open != read->entries.end() ? &*open
                              : read->entries.empty()     ? nullptr
                                                          : &read->entries.back();
    last[entry ? str(entry->what, ", ", entry->state) : "no call"].push_back(rank);
  }
  std::string text = "  where they are:\n" + by_text(last);
  for (const auto& [number, behind] : called)
    if (number < most)
      text += str("  ", named_ranks(behind), behind.size() == 1 ? " has" : " have", " called up to #", number,
                  ", others up to #", most, '\n');
  return text;
}

std::string explain_group(const std::vector<const RankRecord*>& ranks) {
  const FlightRecord& any = ranks.front()->record;
  std::vector<int> silent = any.members;
  std::map<std::string, std::vector<int>> failures;
  for (const RankRecord* read : ranks) {
    const int rank = any.members[static_cast<size_t>(read->record.rank)];
    std::erase(silent, rank);
    if (!read->record.failure.empty()) failures[read->record.failure].push_back(rank);
  }
  std::string text = str("group ", any.group, " of ", named_ranks(any.members), ":\n");
  if (!silent.empty())
    text += str("  ", named_ranks(silent), " left no file: killed, or stopped, or on another disk\n");
  const std::string differs = first_difference(ranks);
  text += differs.empty() ? "  no two ranks differ in a call that all logs have\n" : differs;
  text += where_they_stand(ranks);
  if (!failures.empty()) text += "  why it ended:\n" + by_text(failures);
  return text;
}

}  // namespace

void write_flight_record(const std::string& folder, const FlightRecord& record) {
  std::string name = record.group;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  const std::filesystem::path path =
      std::filesystem::path(folder) / str("rank_", record.members[static_cast<size_t>(record.rank)], '.', name, ".txt");
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  std::string failure = record.failure;
  std::ranges::replace(failure, '\n', ' ');
  std::ofstream file(path);
  file << kRecordTitle << "\ngroup " << record.group << "\nmembers " << with_spaces(record.members) << "\nrank "
       << record.rank << "\nfailure " << failure << '\n'
       << record.log << std::flush;
  WEFT_CHECK(file, "flight record: ", path.string(), " cannot be written");
}

std::string explain_flight_records(const std::string& folder) {
  WEFT_CHECK(std::filesystem::is_directory(folder), "explain: expected a folder of flight records, got '",
             printable(folder), "'. Ranks write one where WEFT_FLIGHT_RECORDS names a folder");
  std::vector<RankRecord> all;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    if (const std::string name = file.path().filename();
        name.starts_with("rank_") && name.ends_with(".txt") && std::ranges::count(name, '.') == 2)
      all.push_back(read_record(file.path()));
  WEFT_CHECK(!all.empty(), "explain: ", folder,
             ": expected files rank_N.GROUP.txt, got none. Ranks write them when a "
             "group fails and at SIGUSR2");
  std::ranges::sort(all, {}, [](const RankRecord& read) { return read.record.rank; });
  std::map<std::pair<std::string, std::vector<int>>, std::vector<const RankRecord*>> groups;
  for (const RankRecord& read : all) groups[{read.record.group, read.record.members}].push_back(&read);
  std::string text;
  for (const auto& [key, ranks] : groups) text += explain_group(ranks);
  return text;
}

}  // namespace weft::dist
