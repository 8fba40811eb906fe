// Package stated reckons what is left of the limits that a server states.
//
// # Words
//
// A [Limit] is one of them, as answers tell of it: its size, how much is left, and its
// reset, when it comes back. A window is the time until then. Units are what requests
// cost. Those of requests that are not answered yet are under way; an [Answer] says what
// was left when its request was served, so units under way may be missing from that. In
// a fleet the Store has a tally of what all processes drew, and a mark: how far that
// count may go, as one of them was told.
//
// # How it works
//
// What is left is what the newest answer said, less what was sent since. Answers overtake
// one another: within one window the least that any of them said is right. Past the
// reset one request asks what there is ([Asks]), unless units come back all the time.
// Others go beside it as far as the last window had something left. Whether units come
// back all the time, package refill judges; whether the server means what it says,
// attribution.Belief; who shares the limit, attribution.Sharing. Of a window of a few
// seconds, whose reset in whole seconds says little, a Limit remembers what this process
// spent itself: its trail. A fleet that shares a tally draws in turns while there is
// little.
//
// # Promises
//
// No more is let through in a window than the server has, as far as its answers tell,
// and nothing that it has is left unused for longer than its resets are rounded by. One
// answer holds nobody up for longer than [Terms.MaxPause]; a reset that answers agree on
// may. What [Limit.Sure] says is certain, because the server said it: a request that cannot
// wait that long may be refused at once.
//
// # Invariants
//
// There is no clock, no lock and no HTTP here but headers.Limit. Who owns a Limit calls
// one method at a time, with instants that do not step back. What Take charged is ended
// once, by Answered or Return, with the token that Take returned. Weigh comes before
// Hear, both once for an answer. A Limit is a [meter.Meter].
package stated
