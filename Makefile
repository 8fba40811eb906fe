# make test is what CI runs; see CONTRIBUTING.md.
.PHONY: test quick lint fuzz bench brownouts population soak mutants fmt

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

brownouts: ## weir and its rivals in outages and brown-outs, a line for each target; N=20 SEED=2001
	go run ./bench/sim/report -dir bench/sim -only 'E5|Fault|Recovery|Patience|Hurry|Processes|E6|E7' -lines -seeds $(or $(N),20) -first $(or $(SEED),2001)

population: ## random servers, tables; SEED=1 N=200, SET=test with a seed of its own
	go run ./bench/sim/population/report -set $(or $(SET),train) -seed $(or $(SEED),1) -n $(or $(N),200)

soak: ## a mixed workload with faults; MINUTES=10
	go run ./interop/soak -minutes $(or $(MINUTES),10)

mutants: ## every named mutant of the contract must be killed
	ci/mutants/run

fmt:
	gofmt -w $$(git ls-files '*.go')
