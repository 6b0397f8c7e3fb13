# weft-info says whether a GPU is usable, and why not.

The first line says it, and the exit code, too. The rest is for a report of a fault.

  $ weft-info
  GPU usable: no, (cudaGetDeviceProperties: |there is no NVIDIA driver|this build has no CUDA).* (re)
  weft      0.…
  driver    …
  visible   CUDA_VISIBLE_DEVICES=
  device    cpu (…)
  …
  backends  …
  launch    rank 0 of 1 (alone)
  HDF5      …
  …
  part      (found  |MISSING) libzip .* (re)
  …
  [1]
  $ weft-info --quiet
  GPU usable: no, …
  [1]
  $ env -u CUDA_VISIBLE_DEVICES weft-info --quiet > said; usable=$?; [ -e /dev/nvidiactl ] && ! grep -q 'no CUDA' said; [ $? = $usable ]; echo $?; grep -cE "^GPU usable: $([ $usable = 0 ] && echo 'yes, cuda:0 \(' || echo 'no, ')" said
  0
  1

It says how this process was launched.

  $ RANK=1 WORLD_SIZE=4 MASTER_ADDR=localhost weft-info | grep ^launch
  launch    rank 1 of 4 (RANK and WORLD_SIZE)
  [1]
  $ RANK=4 WORLD_SIZE=4 MASTER_ADDR=localhost weft-info | grep ^launch
  launch    launch environment: RANK=4 contradicts WORLD_SIZE=4: ranks run from 0 to size - 1
  [1]
  $ weft-info --quite
  weft-info: error: unknown flag --quite. Did you mean --quiet? (weft-info --help lists the flags)
  [2]
