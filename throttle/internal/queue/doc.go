// Package queue decides who goes, in which order: from all accounts or from none.
//
// # Words
//
// An [Account] is one limit: a meter, perhaps a pause, and those that wait for it.
// Its [Label] is how people name it. A [Need] is units of one account; a request
// draws on the accounts of its needs. Those that were found short of an account
// stand in its waitlist, each at its place. A [Group] is what requests have in
// common for which the same limits are made (a key, a host, a partition of one);
// all of them pass its gate, which has no limit and only pauses. A [Domain] is
// what one lock guards: groups, their accounts, a reading of the clock, timers.
// Groups whose requests need accounts in common are in one domain; others had
// better not be, so that they do not wait for one another's lock. [Domains] are all
// those of one owner: their instants count from one moment, and two of them can
// be joined.
//
// # How a request goes
//
// Enter grants it at once if there is room everywhere and nobody is to go first.
// Otherwise Queue lets it wait, or returns a [Refusal] if that certainly cannot
// end in time; the [Waiter] is awaited without the lock, and Finish says how that
// [Ending] came about. What was granted goes on as a [Permit]: Answered when the
// headers came, Lost when the attempt failed, Free when the body is done, Return
// instead of all of these when nothing was sent, Settle when its cost turned out
// to be another.
//
// # Promises
//
// The units of a request are taken from all its accounts in one step or from none,
// at the moment it is granted. A request that waits has places in waitlists and nothing
// else, so nothing that it was promised can become wrong, and giving up costs nothing.
// Within a priority and lane requests are granted in the order of their arrival. Lanes
// take turns. Every eighth grant goes to a lower priority, if one waits. A younger
// request passes older ones only if it draws on no account that they are short of. A
// request is refused only because of what is certain, and then at once. To queue, grant
// or remove one request takes O(log n). What concerns very many requests is done in
// slices, between which the lock is given up.
//
// # Invariants
//
// Whoever calls a method holds the domain's lock, unless its comment says
// otherwise, and passes the now that the domain gave under it: time never steps
// back. Whoever changes what an account may grant calls Mark and then Run before
// the lock is given up, or a method that does (Pause, Redraw, the Permit's): then
// every change is planned, or a timer goes on with it at once. An account belongs to
// one domain, for good: domains are joined and never parted, as what was granted may
// be given back long after. Nobody but [Join] holds the locks of two domains. Nothing
// here calls anybody's code but a Meter and an [Owner], counts for statistics, makes
// errors or knows what HTTP or learning is.
package queue
