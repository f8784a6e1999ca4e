#!/bin/bash
# Fuzzes one target: fuzz/run.sh TARGET [SECONDS] [libFuzzer flags]. Builds it with clang under the address and undefined
# sanitizers in build-fuzz/. What it finds is kept in fuzz/crashers/TARGET/, which every run starts with.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1:?usage: fuzz/run.sh TARGET [SECONDS] [libFuzzer flags]}
seconds=${2:-60}
shift; [ $# -gt 0 ] && shift

cmake -S . -B build-fuzz -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DGANGWAY_FUZZ=ON \
  -DGANGWAY_SANITIZE=address,undefined,fuzzer-no-link "-DCMAKE_CXX_FLAGS=-fno-sanitize-recover=undefined -g1" \
  ${CMAKE_CXX_COMPILER_LAUNCHER:+-DCMAKE_CXX_COMPILER_LAUNCHER=$CMAKE_CXX_COMPILER_LAUNCHER} > /dev/null
ninja -C build-fuzz "$target"

corpus=build-fuzz/corpus/$target
mkdir -p "$corpus" "fuzz/crashers/$target"
case $target in
  stablehlo_fuzz) seeds=$(find gangway/stablehlo/testdata -name '*bc' -size -64k) ;;
  hlo_text_fuzz | program_fuzz) seeds=$(find gangway tests \( -name '*.hlo' -o -path '*hlo/testdata/*.txt' \) -size -32k) ;;
  *) seeds= ;;
esac
for seed in $seeds; do cp -n "$seed" "$corpus/$(echo "$seed" | tr / _)"; done
exec build-fuzz/"$target" "$corpus" "fuzz/crashers/$target" -max_total_time="$seconds" -rss_limit_mb=2048 \
  -malloc_limit_mb=1024 -timeout=20 -artifact_prefix="fuzz/crashers/$target/" -print_final_stats=1 "$@"
