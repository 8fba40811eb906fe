// Package learntest judges package learn on servers that nobody tuned it for.
//
// It draws cases by seed: a server (a kind of limiter, perhaps several, blocks,
// other clients, changes), what it says in headers, a network and a demand. A
// case is played by events on virtual instants, by the learner, by rivals (a
// plain loop that obeys Retry-After, AIMD with a shared pause) and by an oracle
// that knows the server: its schedule is never refused, which a test holds. The
// test set has kinds, dialects, numbers and ranges that the train set has not.
//
//	go test -run TestTable -v . -learn.n 500 -learn.seed 5000 -learn.rivals
//	go test -run TestTrace -v . -learn.trace -learn.seed 5007
//
// Time is over the oracle's: of a batch its length, of calls that come when they
// come the sum of what each took. Refusals are per call served, stalls the
// longest time without an acceptance while somebody waits, beyond the oracle's.
//
// Seeds on which no constant was chosen, 2001 to 2300 of the test set (each is
// used for one table only) and 9001 to 9300 of the train set:
//
//	test           losing  lost %  refusals 50/90/99   time 50/90/99      stall 90
//	learn               4    .09    .033   .33  1.1    1.25   5.2    93      8.0 s
//	plain loop         65   4.71    .40   9.0   69     1.06   3.4    85      6.6 s
//	AIMD                8    .15    .034   .75  1.2    2.03  11.9  1230     10.1 s
//
//	train          losing  lost %  refusals 50/90/99   time 50/90/99      stall 90
//	learn               2    .10    .033   .22   .42   1.09   3.8    32      4.5 s
//	plain loop         64   1.95    .48   5.1    29    1.06   2.6    98      6.6 s
//	AIMD                7    .37    .033   .63  1.0    1.72  10.7   147      7.3 s
//
// The plain loop is faster where a refusal delays one call only: a limit on
// requests at a time, and calls far below the quota that happen to meet. The
// learner is slow (time p90 above 10) at limits on requests at a time, at other
// clients, at instances with limits of their own and at blocks.
package learntest
