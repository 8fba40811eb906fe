// Package population runs weir, and what programs use instead of it, against
// random servers that nobody tuned for, over the whole of their RoundTripper
// and in virtual time. A case is a server (its limiter, what it says of it, the
// network before it), what a program wants of it, and how long that may wait.
//
// Two sets are drawn. Train is for choosing rules and constants. Test has kinds
// of server, dialects and ranges that train has not; rules are judged by it,
// and each of its seeds is used for one published table only.
//
//	make population SEED=1 N=200            # tables of train
//	make population SET=test SEED=7 N=400   # tables of test; once
//
// POPULATION.md has the last published tables and says how to read them.
package population
