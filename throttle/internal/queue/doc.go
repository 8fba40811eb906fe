// Package queue decides who goes, in which order: from all accounts or from none.
//
// # Words
//
// An [Account] is one limit: a meter, perhaps a pause, and the requests that wait for it.
// Its [Label] is how people name it. A [Need] is units of one account; a request
// draws on the accounts of its needs. If an account has too few units for a request, the
// request is short of it, and has a place in its waitlist. A [Group] is the requests that
// have the same limits, such as those of a key, of a host, or of a partition of a host;
// all of them pass its gate, an account that has no limit but may be paused. A [Domain] is
// what one lock guards: groups, their accounts, a reading of the clock, timers.
// Groups whose requests draw on the same accounts must be in one domain. Other groups are
// in different domains, so that they do not wait for one another's lock. [Domains] are all
// those of one owner: their instants count from one moment, and two of them can
// be joined.
//
// # How a request goes
//
// Enter grants it at once if there is room in all accounts and no other request has to go
// first. Otherwise Queue lets it wait, or returns a [Refusal] if it certainly cannot be
// granted in time. The caller awaits the [Waiter] without the lock, and Finish returns the
// [Ending]. What was granted becomes a [Permit]. Its methods are called in this order:
// Answered when the headers have come, or Lost when the attempt has failed; then Free when
// the body is done. If nothing was sent, Return is called instead of these. Settle is called
// when the cost turns out to be another.
//
// # Promises
//
// The units of a request are taken from all its accounts in one step or from none,
// at the moment it is granted. A request that waits has places in waitlists and nothing
// else: no units, and no time at which it will go. So giving up costs nothing.
// Within a priority and lane requests are granted in the order of their arrival. Lanes
// take turns. Every eighth grant goes to a lower priority, if one waits. A younger
// request passes older ones only if it draws on no account that they are short of. A
// request is refused only because of what is certain, and then at once. To queue, grant
// or remove one request takes O(log n). Work for very many requests is divided into
// slices, between which the lock is released.
//
// # Invariants
//
// The caller of a method holds the domain's lock, unless the method's comment says
// otherwise, and passes the now that the domain returned under this lock: time never steps
// back. After a change of what an account may grant, the caller calls Mark and then Run
// before it releases the lock, or a method that does so (Pause, Redraw, those for Permits).
// Then every change is planned when the lock is released, or a timer continues at once. An
// account belongs to one domain for good: domains are joined and never parted, because what
// was granted may be given back long after. Only [Join] holds the locks of two domains. This
// package calls no code but that of a Meter and an [Owner]. It counts no statistics, makes no
// errors, and knows nothing of HTTP or of learning.
package queue
