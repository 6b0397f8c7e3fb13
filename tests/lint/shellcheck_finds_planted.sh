#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Plants a mistake in a script, and expects shellcheck.sh ($1) to find it.
set -euo pipefail
command -v shellcheck >/dev/null || exec "$1" .
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
printf '#!/bin/bash\necho "$1"\n' > "$tree/good"
"$1" "$tree" | grep -qx "1 scripts"
printf '#!/bin/bash\ncd $1 || exit 1\nrm -r $2/*\nfor x in $(ls); do echo $x; done; [ $x == ]\n' > "$tree/bad"
if "$1" "$tree" > "$tree/report"; then
  echo "shellcheck passed a broken script"
  exit 1
fi
grep -q "In ./bad line" "$tree/report"
