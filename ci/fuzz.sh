#!/usr/bin/env bash
# Runs each fuzz target of the root module for the given time. Findings are
# written to the target's testdata/fuzz as Go does, and fail this script.
source "$(dirname "$0")/lib.sh"

time=${1:-30s}
failed=0
while IFS=: read -r file target; do
	step "fuzz: $(dirname "$file") $target for $time"
	go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -parallel 2 "./$(dirname "$file")" || failed=1
done < <(git grep -hoE --full-name '^func Fuzz\w+' -- '*_test.go' >/dev/null; git grep -oE '^func Fuzz\w+' -- '*_test.go' | sed 's/:func /:/' | grep -v '^[a-z]*store/\|^outbox/\|^interop/')
exit $failed
