#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Plants a mistake in a script, and expects shellcheck.sh ($1) to find it.
set -euo pipefail
command -v shellcheck >/dev/null || exec "$1" .
house=$(mktemp -d)
trap 'rm -rf "$house"' EXIT
printf '#!/bin/bash\necho "$1"\n' > "$house/good"
"$1" "$house" | grep -qx "1 scripts"
printf '#!/bin/bash\ncd $1 || exit 1\nrm -r $2/*\nfor x in $(ls); do echo $x; done; [ $x == ]\n' > "$house/bad"
if "$1" "$house" > "$house/report"; then
  echo "shellcheck passed a broken script"
  exit 1
fi
grep -q "In ./bad line" "$house/report"
