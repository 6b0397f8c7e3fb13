#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts.sh APPS. Scripts that start the programs, with a program, an srun and names planted by somebody else: none of these runs,
# and no file outside is written.
set -euo pipefail
apps=$1
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
fail() { echo "scripts.sh: $*"; exit 1; }
program() { printf '#!/bin/bash\n%s\n' "$2" > "$1"; chmod +x "$1"; }

# An srun that runs its command, and programs that print their arguments.
mkdir -p "$work/bin" "$work/run"
cd "$work/run"
# shellcheck disable=SC2016  # the programs expand them
{
  program "$work/bin/srun" '[[ $1 == -[lu] ]] && shift; exec "$@"'
  program "$work/bin/shifter" 'exec "$@"'
  for name in train_vit train_multi_gpu weft-run; do program "$work/bin/$name" 'printf "[%s]" "$@"; echo'; done
}
export PATH=$work/bin:$PATH SLURM_PROCID=0

# Names and flags that a shell would run.
# shellcheck disable=SC2016  # nobody may expand them
name='a b;touch ran $(touch ran)'
printed=$(WEFT_NERSC_VIT=$apps/nersc_vit TRAIN_VIT=$work/bin/train_vit YAML_CONFIG=$name bash "$apps/nersc_vit/submit.sh" --run_num "$name" 2> log)
[[ $printed == "[--yaml_config=$name][--run_num][$name]" ]] || fail "submit.sh: $printed $(< log)"
cp "$apps/nersc/export_DDP_vars.sh" .
program hostname "touch '$work/run/ran'"  # the working folder is no place for programs
for script in modules shifter; do
  printed=$(WEFT_MODULES='' CONFIG=$name YAML_CONFIG=$name bash "$apps/nersc/submit_batch_$script.sh")
  [[ $printed == "[--yaml_config=$name][--config=$name][--run_num=ddp-${script/modules/module}]" ]] || fail "submit_batch_$script.sh: $printed"
done
[[ ! -e ran ]] || fail "a name was run as a command"

# Three folders above a tree's scripts, as /tmp is where the tree is /tmp/weft, anybody may have a bin.
mkdir -p "$work/anybody/bin" "$work/anybody/weft/apps"
cp -r "$apps/vista" "$work/anybody/weft/apps"
for name in weft-run hostname mv; do program "$work/anybody/bin/$name" "touch '$work/run/ran'"; done
export OMPI_COMM_WORLD_RANK=0
"$work/anybody/weft/apps/vista/multinode.sh" > /dev/null
program "$work/bin/multinode" ''
"$work/anybody/weft/apps/vista/run.sh" localhost 1 > /dev/null
[[ ! -e ran ]] || fail "a program three folders above the scripts was run"
# An installation's are there.
mkdir -p "$work/prefix/bin" "$work/prefix/libexec/weft"
cp -r "$apps/vista" "$work/prefix/libexec/weft"
program "$work/prefix/bin/weft-run" 'echo installed'
[[ $("$work/prefix/libexec/weft/vista/run.sh" localhost 1) == installed ]] || fail "run.sh does not find an installation's weft-run"

# A link in the place of the temporary file: the number of the process is no secret. bash tells it to a script that it becomes.
# shellcheck disable=SC2016  # that bash expands them
NNODES=2 bash -c 'ln -s "$PWD/outside" "multi_config.yaml.$$"; exec bash "$0"' "$apps/vista/generate_config.sh"
[[ ! -e outside ]] || fail "generate_config.sh has followed a link"
grep -qx 'num_machines: 2' multi_config.yaml || fail "generate_config.sh has written no multi_config.yaml"
echo "planted programs, names and links: none ran, and nothing was written outside"
