# Without libcrypto one rank alone runs.

needs: !crypto

  $ weft-run echo alone
  alone
  $ weft-run --nproc_per_node=2 true
  … this build has no libcrypto …
  [1]
