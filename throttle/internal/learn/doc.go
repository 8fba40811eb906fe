// Package learn says when something may be sent to a server whose limits nobody
// configured and that states none. It keeps one model for what the server hints by
// Retry-After and for what its refusals show.
//
// A [Learner] is told what was sent and how that ended, in order of time, and
// asked by [Learner.Next] when the next may be sent. Its answer is an instant and a
// reason. Only where that is [Asked], the server said so itself, and a request that
// cannot wait so long may be turned away. [Learner.Leader] is the limit that it
// believes in, and [Learner.Words] says it as people write it.
//
// # Words
//
// A shape is one of the few kinds of limiter that people write (bucket, sliding
// log, window from the first request or by a clock, counter of two windows,
// requests at a time), with its period, its phase, and the ban, if there is one: for so
// long after a refusal all are refused. A candidate is a shape with a
// size and a weight. The level is how many units are in use. An epoch is the
// refusals of what was sent before the first of them was heard: one event. A climb is
// the search upward.
//
// # How it works
//
// The level of a shape does not depend on its size. One replay of the log gives
// all levels: what was accepted says that the size is at least the level it
// reached, what was refused that it is at most the level it found. So only
// shapes are searched, and sizes follow: the roundest that fits. What does not
// fit counts against a candidate, less as it grows old, and so do odd numbers,
// rare families and hints that it would not have given. A refusal that the
// leader did not foresee, or three acceptances, start a search.
//
// Next follows the candidate that costs those who wait least. To follow one that has
// room late costs time, if one that has room earlier is right. To follow one that has
// room early costs a refusal, if a later one is right. A belief that is too slow is
// never refused, and so never corrected by refusals. That is why more is tried while
// requests wait.
//
// # What holds
//
// Nothing is sent before a wait ends that the server asked for in so many words
// (up to MaxPause, or longer if two answers agree), but for a refusal that is
// explained by requests under way: then it binds the refused one alone. Without
// such a wait Next does not recede while nothing happens: asked again at the
// instant that it named, it says now. Names, numbers and sequences that a
// server makes up cost no more than 9 KiB and 2 ms a step. A Learner that saw
// no refusal is 224 bytes and makes no garbage.
//
// A process of a fleet tells its Learner of what others sent and were refused, too. Two
// that know of the same find the same limit, see Elsewhere.
//
// There is no clock, no lock and no HTTP here. Who owns a
// Learner calls one method at a time. What makes requests of one kind bound by
// one Learner, what a configured budget says, and how many requests at a time a
// server gets that never refused, is the caller's business.
//
// # How it was judged
//
// Constants were chosen on servers, networks and demands drawn by seed, which their
// comments call train, and judged on kinds, dialects and ranges that train has not.
// bench/sim/population draws such cases for a whole Transport, beside other callers and
// one who knows the server, and holds what is reached.
package learn
