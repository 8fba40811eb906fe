#!/usr/bin/env bash
# gofmt, vet and staticcheck in every module.
source "$(dirname "$0")/lib.sh"

step gofmt
unformatted=$(git ls-files '*.go' | xargs gofmt -l)
[ -z "$unformatted" ] || { echo "not formatted: $unformatted" >&2; exit 1; }

for m in $(modules); do
	step "vet and staticcheck: $m"
	(cd "$m" && go vet ./... && go run "$STATICCHECK" ./...)
done
