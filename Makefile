# make test is what CI runs; see CONTRIBUTING.md.
.PHONY: test quick lint fuzz bench soak mutants fmt

test: ## everything: what is needed is installed, every module tested
	ci/test.sh

quick: ## the root module only, without the race detector
	go test ./...

lint:
	ci/lint.sh

fuzz: ## 30 s for each fuzz target
	ci/fuzz.sh 30s

bench: ## weir beside its rivals, ten minutes; BENCHFLAGS=-quick for 90 s
	go run ./bench $(BENCHFLAGS)

soak: ## a mixed workload with faults; MINUTES=10
	go run ./interop/soak -minutes $(or $(MINUTES),10)

mutants: ## every named mutant of the contract must be killed
	ci/mutants/run

fmt:
	gofmt -w $$(git ls-files '*.go')
