#!/usr/bin/env bash
# Runs each fuzz target of the root module for the given time. Findings are
# written to the target's testdata/fuzz, as Go does, and fail this script.
source "$(dirname "$0")/lib.sh"

time=${1:-30s}
failed=0
for hit in $(git grep -oE '^func Fuzz[A-Za-z0-9]+' -- headers throttle retry breaker internal | sed 's/func //'); do
	folder=$(dirname "${hit%%:*}") target=${hit##*:}
	step "fuzz: $folder $target for $time"
	go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "./$folder" || failed=1
done
exit $failed
