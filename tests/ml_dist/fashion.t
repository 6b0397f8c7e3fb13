# mnist learns from the first images of a real set, on which bars of light would not do.

needs: zlib shared/fashion-mnist

  $ "$WEFT"/tests/ml_dist/digits.py "$WEFT_SHARED_DATA"/fashion-mnist data 6000 1000
  $ OMP_NUM_THREADS=2 mnist --epochs 1 --data-dir data 2> said | grep -o 'Accuracy: [0-9]*' | grep -o '[0-9]*$' | jq '. >= 750'
  true
