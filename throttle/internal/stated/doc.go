// Package stated computes what is left of the limits that a server states.
//
// # Words
//
// A [Limit] is one of them, as answers state it: its size, how many units are left, and its
// reset, which is when all units are there again. A window is the time until the reset. A
// unit is what requests cost; a request draws units. Those of requests that are not answered
// yet are under way. An [Answer] says what was left when its request was served, so units
// under way may have to be subtracted. In a fleet the Store has a tally, which counts what all
// processes drew, and a mark, which says how far that count may go, as an answer to one of
// them said.
//
// # How it works
//
// What is left is what the newest answer said, less what was sent since. Answers may overtake
// one another; within one window the least number that any of them said is right. After the
// reset one request asks what there is ([Asks]), unless units come back all the time.
// Others may go at the same time, up to what was left of the last window. Package refill
// decides whether units come back all the time, attribution.Belief whether the limit is
// obeyed, attribution.Counters whether several servers state it that count each for itself, and
// attribution.Sharing which requests share it. If a window has only a few
// seconds, its reset in whole seconds is not exact enough; then a Limit remembers when this
// process spent its units: its trail. It does so, too, if only refusals state the limit,
// because then no answer says what there is after the reset. Without a window there is no trail:
// such a limit is filled step by step. Where answers take long, a request that was not refused in
// time counts as served before its answer comes. The processes of a fleet with a tally draw in
// turns while little is left.
//
// # Promises
//
// No more is let through in a window than the server has, as far as its answers show. What it
// has is not left unused for longer than the error of its resets, which are rounded. One answer
// makes nobody wait for longer than [Terms.MaxPause]; a reset on which several answers agree
// may. If requests are served long before such resets, these are waited for ever shorter. A limit
// that the server states no more is dropped soon after its reset ([Limit.Silent]).
// What [Limit.Sure] says is certain, because the server said it: a request that cannot wait that
// long may be refused at once.
//
// # Invariants
//
// There is no clock, no lock and no HTTP here except headers.Limit. The owner of a Limit calls
// one method at a time, with instants that do not step back. After Take, Answered or Return
// is called once, with the token that Take returned. For each answer Weigh is called once, and
// then Hear once. A Limit is a [meter.Meter].
package stated
