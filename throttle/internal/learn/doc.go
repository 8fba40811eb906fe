// Package learn finds out when requests may be sent to a server whose limits nobody
// configured and that states none. One model is for what the server says by Retry-After
// and for what its refusals show.
//
// A [Learner] is told what was sent and how that ended, in the order of time. Its
// [Learner.Next] says when the next request may be sent, and for which reason. Only if the
// reason is [Asked] the server said so itself, and a request that cannot wait so long may be
// refused. [Learner.Leader] is the limit that is the most likely, and [Learner.Words] says it
// in the way in which people write limits.
//
// # Words
//
// A shape is one of the few kinds of limiter that people write (bucket, sliding
// log, window from the first request or by a clock, counter of two windows,
// requests at a time), with its period and its phase. It may have a ban: for so
// long after a refusal everything is refused. A candidate is a shape with a
// size and a weight, which is how likely it is. The leader is the candidate of the largest
// weight. The level of a limiter is how many units are in use. An epoch is one event: the
// refusals of requests that were sent before the first of these refusals was heard. A streak is a
// row of epochs without an acceptance between them. A climb is a search for a higher limit, and a
// widening is one for more requests at a time. Others are the other processes of a fleet, which
// share limits.
//
// Train is the set of drawn servers on which constants were chosen, see below. Where a comment
// says "time p90 4.1, train", the work took up to 4.1 times as long in nine of ten cases as a
// client needs that knows the limit.
//
// # How it works
//
// How many requests are at the server is counted, too: those under way, without those whose
// answers came, or were on their way, when one arrived. For the next one it is estimated from
// when each was sent and for how long the server works.
//
// After a refusal, each acceptance earns trust: one more may be under way that a candidate allows.
// Refusals come at once, also from a server that works for a minute on what it accepts. So a request
// that is under way for far longer than refusals take counts as accepted, unless the host may be down
// or refuses other processes, too, of which is heard late.
//
// The level of a shape does not depend on its size. So one replay of the log gives
// all levels: an accepted request shows that the size is at least the level that it
// reached, and a refused one that the size is at most the level that it found. Therefore only
// shapes are searched, and the size of each is the roundest number that fits. Evidence that
// does not fit counts against a candidate, the less the older it is, and so do odd numbers,
// rare families and hints that it would not have given. A refusal that the
// leader did not predict, or three acceptances, start a search. Most shapes are suggested by an
// answer; the phases of counters are scanned, as long as nothing explains the log well.
//
// Next chooses the candidate by whose word requests lose the least time. If it goes by one
// that has room late, and one that has room earlier is right, requests wait in vain. If it goes
// by one that has room early, and a later one is right, a request is refused. A limit that is
// believed to be lower than it is causes no refusals, so these never correct it. That is why
// more is tried while requests wait.
//
// # What holds
//
// Nothing is sent before a wait ends that the server asked for
// (up to MaxPause, or longer if two answers agree). If requests under way explain the refusal,
// the wait is for the refused request alone. Without
// such a wait, an instant that Next has named does not move later while nothing happens: if
// Next is called at that instant, it returns now. Whatever a hostile
// server does costs no more than 9 KiB, and some 2 ms for each step. A Learner that was told of
// no refusal has 224 bytes and makes no garbage.
//
// A process of a fleet also tells its Learner what others sent and what of it was refused. Two
// Learners that were told the same find the same limit, see Elsewhere.
//
// There is no clock, no lock and no HTTP here. The owner of a
// Learner calls one method at a time, with instants that do not step back. The caller decides
// which requests have one Learner, what configured budgets say, and how many requests at a time
// are sent to a server that never refused.
//
// # How it was judged
//
// Constants were chosen on servers, networks and demands that were drawn by seed: train. They
// were judged on kinds, dialects and ranges that train does not have.
// bench/sim/population draws such cases for a whole Transport, compares it with other clients
// and with one that knows the server, and has a test that holds the result.
package learn
