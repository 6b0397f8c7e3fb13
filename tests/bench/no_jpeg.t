# A case without its part says how to build it in

needs: !jpeg

  $ bench --tiny --seconds 0 --filter '^loader_jpeg$'
  bench: loader_jpeg: built without libjpeg-turbo: apt-get install libjpeg-dev and build again
  [1]
