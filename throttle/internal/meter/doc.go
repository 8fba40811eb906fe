// Package meter is the arithmetic of budgets: how many units may go, and when.
//
// Its one interface is [Meter]. The meter of a Rate is a [Rated], that of a limit on
// requests at a time is an [InFlight]. [Open] is the meter of no limit; other types embed
// it. Limits that a server states or that are learned have meters in other packages.
//
// # Words
//
// A unit is what a limit counts: a request, a token, a byte. Units are granted
// in one step by Take. They are held until the answer to their request comes, or the
// request ends without one. A settlement is a charge after the answer, when the real cost
// is known; it is not held. Units are in transit while the server may not have seen them
// yet: the transit is the longest time for which that is assumed. Returned units count
// as never granted.
//
// A [Spec] is a rate as it is configured, and a [Rate] is a Spec with what is computed
// from it. Its window is the last Per, or with Align that period of the calendar in which
// now is. Its bucket, or its warm-up, says how fast units may follow one another: it
// shapes the rate. To drain a bucket is to take tokens from it at the beginning of a
// pause, so that no burst follows the pause.
//
// # Promises
//
// In no window of length Per are more than Limit units granted, whatever is
// returned, settled, drained or changed in between. A Spec with Bucket promises another
// thing: at most Burst + Limit*W/Per units in any window of length W. So that the promise
// holds for the server's clock as well, a held unit counts until Per after its answer, or
// until Per and the transit after its grant if that is sooner. Waits are exact to the
// nanosecond. The memory of a meter does not grow with its limit: in large windows, units
// granted within Per/[Exact] share one date. A unit may therefore count that much too
// long, but never too short.
//
// # Invariants
//
// There is no clock, no lock and no HTTP here. The owner of a meter passes the time to
// each call, never an earlier one than before, and calls one method at a time. Between
// two calls at the same instant nothing changes by itself. So Take may follow exactly if
// At returns now. State, ETA and Sure change nothing that can be seen.
package meter
