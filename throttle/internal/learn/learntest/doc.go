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
// Seeds on which no constant was chosen, 2601 to 2900 of the test set (each is
// used for one table only) and 9901 to 10200 of the train set:
//
//	test           losing  lost %  refusals 50/90/99   time 50/90/99      stall 90
//	learn               1    .00    .039   .30  1.0    1.11   3.5    24      4.8 s
//	plain loop         65   3.47    .31   8.9    97    1.04   3.6    67      7.1 s
//	AIMD               10    .20    .030   .68  1.6    1.87  11.4   215      8.7 s
//
//	train          losing  lost %  refusals 50/90/99   time 50/90/99      stall 90
//	learn               2    .01    .042   .24   .60   1.10   3.0    20      2.3 s
//	plain loop         72   4.20    .48   8.5    41    1.10   3.0    46      6.9 s
//	AIMD                7    .16    .035   .72  1.2    2.02  11.6   332      5.8 s
//
// The plain loop is faster where a refusal delays one call only: a limit on
// requests at a time, and calls far below the quota that happen to meet. The
// learner is slow (time p90 above 10) at limits on requests at a time, at other
// clients, at instances with limits of their own and at blocks.
package learntest
