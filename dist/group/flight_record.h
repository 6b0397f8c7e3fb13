// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace weft::dist {

/// A rank's last collectives in a group, as a file keeps them.
struct FlightRecord {
  std::string group;
  std::vector<int> members;  ///< the job's ranks of the group's
  int rank = 0;              ///< in the group
  std::string failure;       ///< empty: the group has none
  std::string log;           ///< FlightLog::text()
};

/// Writes FOLDER/rank_R.GROUP.txt, R the rank in the job; once more: over it. Errors: it cannot be written.
void write_flight_record(const std::string& folder, const FlightRecord& record);

/// Reads the files of all ranks. The text has for each group the ranks without a file, the first call in which ranks
/// differ, and the place of each. Errors: no folder; no file in it; another kind of file.
std::string explain_flight_records(const std::string& folder);

}  // namespace weft::dist
