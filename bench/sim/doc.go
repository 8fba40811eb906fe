// Package sim runs strategies for calling quota-limited APIs against simulated
// servers, in virtual time: weir, and the plain ones that programs use. The
// scenarios are tests, because testing/synctest needs one; the program in
// folder report runs them over many seeds and renders their table and plots.
//
//	go test ./sim                  # few seeds, loose assertions
//	go run ./sim/report -seeds 20  # writes sim/RESULTS.md and the plots
//
// The servers know nothing of weir's packages: they speak HTTP only.
package sim
