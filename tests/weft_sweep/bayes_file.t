# A Bayesian search of multiples of a step

needs: optuna yaml

  $ PATH=$WEFT/tests/weft_sweep:$PATH
  $ cat > s.yaml <<'END'
  > method: bayes
  > run_cap: 12
  > metric: {name: val_loss}
  > parameters:
  >   x: {distribution: q_uniform, min: 1, max: 100, q: 5}
  > END
  $ weft-sweep --sweep s.yaml --out sweep -- train --x={x} --out={run} > log
  $ jq -c '[.points[].x | tonumber] | length, all(. >= 5 and . <= 100 and . % 5 == 0)' sweep/sweep.json
  12
  true
