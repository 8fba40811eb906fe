// Package refill judges how a limit comes back that a server states.
//
// # Words
//
// A [Window] is full again at its reset, and gives nothing back before. A [Bucket] gets
// units back all the time, at its refill. A sliding [Log] gets each unit back a window
// after it was spent. Servers state all three in the same fields. An [Answer] is what one
// answer shows: what was left when its request was served, and what is known of the
// units that were spent meanwhile.
//
// # How it works
//
// From one answer to a later one each of the three says how much should be left. What is
// left is held against that: the further off, the less likely the kind. More left than a
// kind can explain speaks against it in full. Less left speaks half as much, because
// others may have spent it. One answer moves the verdict only so far, and the verdict is
// never so sure that some answers could not change it: networks jitter, and servers are
// reconfigured. Two answers are compared once the kinds differ about them by more than
// what is under way leaves open.
//
// # Promises
//
// The zero [Judge] takes a limit for a window, which is what holds back no request that
// another kind would let go earlier than stated, and is refused least when it is wrong.
// It changes its mind by evidence alone. Others who spend of the limit do not make a
// window of a bucket, nor does a change of the bucket's rate.
//
// # Invariants
//
// There is no clock, no lock and no HTTP here. Who owns a Judge passes answers in the
// order in which they were heard. A Judge is of fixed size.
package refill
