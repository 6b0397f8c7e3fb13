// SPDX-License-Identifier: Apache-2.0
#include "dist/group/backends.h"

namespace weft::dist {

ProcessGroupPtr make_gloo_group(GroupRecordPtr, std::shared_ptr<Store>) {
  fail("process group: backend gloo: built without Gloo. On Debian: apt-get install libgloo-dev, then configure again");
}

}  // namespace weft::dist
