# Without libzip mnist says before it trains that it cannot save.

needs: !zip

  $ "$WEFT"/tests/ml_dist/digits.py bars data 64 10; mnist --save-model --data-dir data 2>&1 | grep -oE 'mnist: error: --save-model: built without libzip|epoch 1'
  mnist: error: --save-model: built without libzip
  [1]
