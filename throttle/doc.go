// Package throttle keeps a program within the budgets that it has for other
// people's HTTP APIs. It sends what there is room for, lets the rest wait its
// turn, and refuses at once what cannot be sent in time.
//
// A [Budget] is a list of rates that must all have room, and a number of
// requests in flight. [Transport] applies budgets to requests by host, method
// and path; [Limiter] applies them to keys of any kind, without HTTP.
//
// Most programs need [New], [Config], [ParseBudget] and [Error]; those without HTTP
// need [NewLimiter] and [Limiter.Take]. The other types are for statistics ([Stats]),
// hooks ([Wait], [Learned]), what is kept for the next run ([Knowledge]) and budgets
// that several processes share ([FleetConfig]). They have many fields, so go doc -all
// of this package is long.
//
// # What is promised
//
// In no window of length Per are more than Limit units of a rate sent, wherever
// the window begins. A unit is a request, unless the rate names another. A unit
// counts from its grant, which is the moment at which its request may be sent. A
// [Transport] counts it until Per after the answer's headers came, or after a
// tenth of Per if that is sooner. So the server sees no more than Limit either,
// unless a request takes longer than that tenth to reach it. Rates with Bucket or
// Align promise what these fields say instead. The bucket of a Transport begins to
// refill when the answer has come, or after a second, because the server's own
// bucket begins when it sees the request.
//
// An account is the record of what is left of one limit. A request takes what it costs
// from all accounts that bind it in one step, at the moment it is sent, or from none.
// While it waits it holds nothing. So whatever changes (a pause, a budget, another
// request that gives up) counts at once for all that wait.
//
// If it is certain that a wait cannot end before the context's deadline, or within
// MaxWait, the request is refused at once. The [*Error] says how long the wait would
// have been, and nothing is spent. A wait is certain if it comes from a budget, from a
// pause by hand, or from what the server stated. If it comes from what was only found
// or guessed, the request waits until that time is over, because a better estimate may
// come.
//
// # Who goes first
//
// A lane is a group of requests that [Config].Lane names, such as those of a tenant.
// Requests of one priority and lane are sent in the order in which they came; one that
// package retry repeats keeps its place. Lanes of one priority take turns. A
// higher priority goes first, but every eighth grant of a queue goes to a lower
// priority, if one waits there. A request that waits for one account (a route's budget)
// does not hold up those that do not need it. No younger request of its priority and
// lane takes from an account of which there is too little for it.
//
// If a server refuses the same request again while it serves others, that request waits
// alone, behind all others, and holds up nobody. So do later requests to its URL, until one
// of them is served.
package throttle
