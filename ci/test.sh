#!/usr/bin/env bash
# Every module's tests with the race detector, each also built and vetted
# without the workspace, and the linters. With CI=true nothing may be missing.
source "$(dirname "$0")/lib.sh"

ci/install.sh
ci/lint.sh
for m in $(modules); do
	step "test: $m"
	(cd "$m" && go test -race -timeout 20m ./...)
done
step "a million keys"
go test -run '^TestMillion' -timeout 10m ./throttle
for m in $(modules); do
	step "without the workspace: $m"
	(cd "$m" && GOWORK=off go build ./... && GOWORK=off go test -short -timeout 20m ./...)
done
