// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace weft::dist {

/// What one rank of a group leaves in a file: its last collectives.
struct FlightRecord {
  std::string group;
  std::vector<int> members;  ///< the job's ranks of the group's
  int rank = 0;              ///< in the group
  std::string failure;       ///< empty: the group has none
  std::string log;           ///< FlightLog::text()
};

/// Writes FOLDER/rank_R.GROUP.txt, R the rank in the job; once more: over it. Errors: it cannot be written.
void write_flight_record(const std::string& folder, const FlightRecord& record);

/// What the files of all ranks say together, group by group: who wrote none, the first call in which ranks differ,
/// where each rank stands, and why the group ended. Errors: no such folder or no file in it, one that is no record.
std::string explain_flight_records(const std::string& folder);

}  // namespace weft::dist
