#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# first_hour.sh SOURCES: README's commands in one clone, in either order and twice each, and then the course's first command. What they configure
# is real; ninja and ctest only say what they were asked for. A command must leave no option for the next one: whichever came before,
# the same command configures the same.
set -euo pipefail
sources=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
real_ninja=$(command -v ninja)
mkdir "$work/bin"
cat > "$work/bin/ninja" <<NINJA
#!/bin/bash
# CMake's own checks are built, Weft is not.
folder=.
[[ \$1 != -C ]] || folder=\$2
case " \$* " in
  *" train_image weft-run "*)
    mkdir -p "\$folder/bin"
    printf '#!/bin/bash\necho trained\n' | tee "\$folder/bin/train_image" >"\$folder/bin/weft-run"
    chmod +x "\$folder/bin/train_image" "\$folder/bin/weft-run"
    ;;
  *" cpu_tests "* | *" quick_tests "*) echo "built: \$*" ;;
  *) exec "$real_ninja" "\$@" ;;
esac
NINJA
printf '#!/bin/bash\necho "tested: $*"\n' > "$work/bin/ctest"
chmod +x "$work/bin/ninja" "$work/bin/ctest"
export PATH=$work/bin:$PATH

clone() {
  rm -rf "$work/clone"
  mkdir "$work/clone"
  (cd "$sources" && tar --exclude-vcs --exclude='./build*' --exclude=./runs --exclude=./datasets --exclude=./deps -cf - .) | tar -xf - -C "$work/clone"
  printf '#!/bin/bash\n' > "$work/clone/tools/install_packages"  # the packages of this machine
}
run() {
  (cd "$work/clone" && unset BUILD && "$@") >"$work/log" 2>&1 || { cat "$work/log"; echo "FAILED: $*, after: ${history[*]:-nothing}"; exit 1; }
  history+=("$*")
}
# What a build folder was configured with.
options() { grep -hE '^(WEFT_|CMAKE_BUILD_TYPE)[A-Z_]*:(STRING|BOOL|UNINITIALIZED)' "$work/clone/$1/CMakeCache.txt" | sort; }

history=()
clone
run tools/test
fresh=$(options build) fresh_cpu=$(options build-cpu)
grep -q 'tested: .*quick' "$work/log"
run tools/quickstart
fresh_quick=$(options build-quick)
run tools/test
run tools/quickstart

history=()
clone
for _ in 1 2; do
  run tools/quickstart
  run tools/test
  for folder in build build-cpu build-quick; do
    case $folder in build) expected=$fresh ;; build-cpu) expected=$fresh_cpu ;; *) expected=$fresh_quick ;; esac
    if ! diff <(echo "$expected") <(options "$folder"); then
      echo "FAILED: $folder is configured otherwise after: ${history[*]}"
      exit 1
    fi
  done
done
run cmake -S . -B build -G Ninja  # docs/course, docs/lab.md
echo "Both commands configure the same in either order: $(wc -l <<<"$fresh") options of build"
