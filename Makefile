# make test is what CI runs; see CONTRIBUTING.md.
.PHONY: test quick lint fuzz bench soak fmt

test: ## everything: what is needed is installed, every module tested
	ci/test.sh

quick: ## the root module only, without the race detector
	go test ./...

lint:
	ci/lint.sh

fuzz: ## 30 s for each fuzz target
	ci/fuzz.sh 30s

bench: ## every benchmark of the root module
	go test -run '^$$' -bench . ./...

fmt:
	gofmt -w $$(git ls-files '*.go')
