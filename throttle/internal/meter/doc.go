// Package meter is the arithmetic of budgets: how many units may go, and when.
//
// Its one interface is [Meter]. A Rate's meter is a [Rated], a limit on requests
// at a time an [InFlight], and no limit at all an [Open], which others embed.
// What is learned of a server counts with meters of its own, made elsewhere.
//
// # Words
//
// A unit is what a limit counts: a request, a token, a byte. Units are granted
// in one step by Take. They are held until their answer comes, or their request
// ends without one; a settlement is not held. They are in transit while the
// server may not have seen them yet. Returned units count as never granted.
//
// A [Spec] is a rate as it is configured, a [Rate] the same with what follows
// from it. Its window is the last Per, or with Align the part of a calendar that
// now lies in. Its bucket, or its warm-up, says how fast units may follow one
// another. To drain a bucket is to see to it that a pause saves up no burst.
//
// # Promises
//
// In no window of length Per are more than Limit units granted, whatever is
// returned, settled, drained or changed in between, except by a bucket, which
// promises Burst + Limit*W/Per in any window W. To hold at the server as well, a
// held unit counts until Per after its answer, or Per and the transit after its
// grant if that is sooner. Waits are exact to the nanosecond. What a meter keeps
// does not grow with its limit: dates of large windows lie Per/[Exact] apart, so a
// unit may leave that much too late, never too early.
//
// # Invariants
//
// There is no clock, no lock and no HTTP here. Whoever owns a meter says what
// time it is, never steps back, and calls one method at a time. Between two calls
// at the same instant nothing changes by itself: At says now exactly if Take may
// follow, and State, ETA and Sure change nothing that can be seen.
package meter
