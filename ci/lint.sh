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

# Where programs run that nobody here tests on.
for m in . filestore outbox otelweir redisstore; do
	step "vet for 32 bits and Windows: $m"
	(cd "$m" && GOARCH=386 go vet ./... && GOOS=windows go vet ./...)
done
