# A file of W&B's caps its grid and names its program

needs: yaml

  $ cat > s.yaml <<'END'
  > program: prog
  > method: grid
  > run_cap: 2
  > name: n
  > command: ['${program}', '--out={run}', '${args}', last]
  > parameters:
  >   lr: {values: [0.1, 0.01, 0.001]}
  > END
  $ weft-sweep --sweep s.yaml --dry-run --out o
  weft-sweep: s.yaml: passed over, as wandb's own: name
  prog --out=o/lr=0.1 --lr=0.1 last
  prog --out=o/lr=0.01 --lr=0.01 last
  $ weft-sweep --sweep s.yaml --dry-run --out o -- other {run}
  weft-sweep: s.yaml: passed over, as wandb's own: name
  weft-sweep: s.yaml: program and command are passed over: the command line has a program
  other o/lr=0.1 --lr=0.1
  other o/lr=0.01 --lr=0.01
