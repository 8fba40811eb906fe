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
// 500 cases of each set, on seeds that no constant was chosen on; each seed of
// the test set is used for one table only (these were 1 to 500).
//
//	test           losing  lost %  refusals 50/90/99   time 50/90/99     stall 90
//	learn               5    .18    .029   .27   .93   1.18   5.9  103      7.0 s
//	plain loop        102   3.33    .34   5.8   140    1.04   3.7  121      7.1 s
//	AIMD               14    .51    .032   .61  1.1    1.81  12.4  532      9.3 s
//
//	train          losing  lost %  refusals 50/90/99   time 50/90/99     stall 90
//	learn               2    .01    .030   .25   .73   1.10   3.9   70      4.9 s
//	plain loop        100   2.03    .44   4.7    40    1.11   2.9   43      6.7 s
//	AIMD               10    .10    .029   .70  1.1    1.94  10.2  153      4.3 s
//
// The plain loop is faster where one refusal pauses one call only: a limit on
// requests at a time, and calls far below the quota that happen to meet. What
// the learner is slow at: instances with limits of their own (p90 63), small
// buckets that flow fast (22), other clients (17), limits at a time (14).
package learntest
