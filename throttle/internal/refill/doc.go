// Package refill finds out in which way the units of a limit come back, where a server states
// how many are left but not of which kind the limit is.
//
// # Words
//
// A [Window] is full again at its reset, and gets nothing back before. A [Bucket] gets
// units back all the time, at its refill rate. A sliding [Log] gets each unit back one window
// after it was spent. A sliding [Counter] gets the units of one window back evenly during the
// next one. Servers state all four in the same headers. An [Answer] is what one
// answer shows: what was left when its request was served, and what is known of the
// units that were spent meanwhile.
//
// # How it works
//
// Given one answer, each kind predicts how much is left at a later one. The more this
// differs from what the later answer says, the less likely is the kind. If more is left
// than a kind predicts, the difference counts in full. If less is left it counts by half,
// because other programs may have spent it. The weight of one answer is bounded, as networks
// jitter; and so is the weight of all of them, as servers are reconfigured: a few answers can
// always change the verdict. Two answers are compared only when the predictions of the kinds
// differ by more than the requests under way could explain.
//
// # Promises
//
// The zero [Judge] takes a limit for a window: it lets no request go before the reset that
// the server states, so it is refused least if it is wrong. Only evidence changes the
// verdict. If others spend of the limit, or a bucket's rate changes, a bucket is not taken
// for a window.
//
// # Invariants
//
// There is no clock, no lock and no HTTP here. The owner of a Judge calls one method at a
// time, and passes answers in the order in which they were heard. A Judge has a fixed size.
package refill
