#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Plants what links.py, facts.py, from_pytorch.py, commands.py, snippets.py and play.py are there to find.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{bin,tools,docs,core}
touch "$tree/core/tensor.h"
printf '#!/bin/bash\necho "  --steps N   how many;  --out FOLDER"\n' > "$tree/bin/train"
chmod +x "$tree/bin/train"

expect() {  # expect STATUS TEXT COMMAND…: exit status and a piece of what is printed
  local status=0 printed
  printed=$("${@:3}" 2>&1) || status=$?
  if [[ $status -ne $1 || $printed != *"$2"* ]]; then
    echo "${*:3}: expected status $1 and '$2', got $status and: $printed"
    exit 1
  fi
}
page() { cat > "$tree/docs/a.md"; }

page <<< $'# A page\n\nSee [here](a.md#a-page), [there](../core/tensor.h), `core/tensor.h` and `core/tensor`.'
expect 0 "1 pages" "$here/links.py" "$tree" docs/a.md
page <<< $'# A page\n\n[there](b.md)'
expect 1 "docs/a.md:3: there is no b.md" "$here/links.py" "$tree" docs/a.md
page <<< $'# A page\n\n[there](a.md#else)'
expect 1 "docs/a.md:3: a.md has no heading '#else'" "$here/links.py" "$tree" docs/a.md
page <<< $'# A page\n\n`core/gone.h`'
expect 1 "docs/a.md:3: there is no core/gone.h" "$here/links.py" "$tree" docs/a.md

printf '# name\nspeed\t1.2\ttimes as fast\ttoday\n' > "$tree/docs/facts.tsv"
page <<< '1.2<!-- fact:speed --> and 1.2<!-- fact:speed -->'
expect 0 "every fact agrees" "$here/facts.py" "$tree" docs/a.md
page <<< '1.2<!-- fact:speed --> and 11.2<!-- fact:speed -->'
expect 1 "docs/a.md:1: expected 1.2 (speed), got 'and 11.2'" "$here/facts.py" "$tree" docs/a.md
page <<< '1.2<!-- fact:other -->'
expect 1 "docs/a.md:1: docs/facts.tsv has no fact other" "$here/facts.py" "$tree" docs/a.md
expect 1 "no page quotes speed" "$here/facts.py" "$tree" docs/a.md

mkdir -p "$tree/apps"
printf '| PyTorch | Weft |\n| --- | --- |\n| `torch.addd` | the same names |\n' > "$tree/docs/from_pytorch.md"
printf '| floats | `no_such_name` |\n' > "$tree/docs/ops.md"
expect 1 "Weft has no addd" "$here/from_pytorch.py" "$tree"
expect 1 "the op no_such_name is not on the page" "$here/from_pytorch.py" "$tree"
printf 'torch.a\tno_such\t\ntorch.b\t-\t\ntorch.b\t-\tits reason\n' > "$tree/docs/pytorch_functions.tsv"
expect 1 "Weft has no no_such (torch.a)" "$here/from_pytorch.py" "$tree"
expect 1 "torch.b needs a reason" "$here/from_pytorch.py" "$tree"
expect 1 "torch.b is there twice" "$here/from_pytorch.py" "$tree"
expect 1 "the page does not say 1 of 3" "$here/from_pytorch.py" "$tree"
rm "$tree/docs/pytorch_functions.tsv"

page <<< $'```\nmpirun -np 2 bin/train -- other --else \\\n  bin/train --steps 3 --out=x | tee --append log   # --what\n```'
expect 0 "1 pages" "$here/commands.py" "$tree/bin" "$tree" docs/a.md
page <<< $'```sh\nbin/train --steps 3\ntrain --step 3\n```'
expect 1 "docs/a.md:3: train has no --step" "$here/commands.py" "$tree/bin" "$tree" docs/a.md

page <<< $'```cpp\n#include <vector>\nint main() {\n}\n```\n\n<!-- before\nint x = 1;\n-->\n```cpp\nf(x);\n```\n<!-- after\ng(x);\n-->'
for piece in 'int run() {' '#include <vector>' $'#line 8 "docs/a.md"\nint x = 1;' $'#line 11 "docs/a.md"\nf(x);' 'g(x);' docs_a_2; do
  expect 0 "$piece" "$here/snippets.py" "$tree" docs/a.md
done

mkdir "$tree/docs/workflows"
touch "$tree/docs/workflows"/{vista,nersc,nersc_vit,jsc,ml_dist,oscer}.md "$tree/docs/clusters.md"
printf '#!/bin/bash\necho "Epoch 40"; exit ${CODE:-0}\n' > "$tree/bin/single_gpu"
chmod +x "$tree/bin/single_gpu"
printf 'A page\n\n    single_gpu 50 10      # fifty epochs\n' > "$tree/docs/workflows/vista.md"
for piece in 'vista.md:3 | single_gpu 50 10 | WRONG' 'expected it to print' "nersc.md: no command begins with 'cd apps/nersc'"; do
  expect 1 "$piece" "$here/play.py" "$tree" "$tree/bin"
done
CODE=3 expect 1 'expected exit code 0, got 3' "$here/play.py" "$tree" "$tree/bin"
