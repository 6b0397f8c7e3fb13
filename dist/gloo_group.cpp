// SPDX-License-Identifier: Apache-2.0
#include "dist/backends.h"
#include "dist/direct_transport.h"
#include "dist/gloo_link.h"
#include "dist/host_group.h"

namespace weft::dist {

ProcessGroupPtr make_gloo_group(GroupRecordPtr record, std::shared_ptr<Store> store) {
  WEFT_CHECK(store, "process group gloo: expected a store, got none");
  // Each group that a job makes has a place of its own; all ranks count alike.
  const int64_t number = store->add(str("gloo/made/", record->rank), 1);
  const std::string prefix = str("gloo/", number);
  record->explain_in(store, prefix + "/failure");
  auto link = make_gloo_link(record->rank, record->size, store, prefix, Clock::now() + record->options.timeout);
  auto transport = make_direct_transport(std::move(link), record->name);
  return make_host_group(std::move(record), std::move(transport), "gloo");
}

}  // namespace weft::dist
