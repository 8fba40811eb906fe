// Package throttle keeps a program within the budgets that it has for other
// people's HTTP APIs. It sends what there is room for, lets the rest wait its
// turn, and refuses at once what cannot go in time.
//
// A [Budget] is a list of rates that must all have room, and a number of
// requests in flight. [Transport] applies budgets to requests by host, method
// and path; [Limiter] applies them to keys of any kind, without HTTP.
//
// # What is promised
//
// In no window of length Per are more than Limit units sent, wherever the
// window begins. A [Transport] counts a unit from its grant until Per after the
// answer's headers came, or after a tenth of Per if that is sooner, so the server
// sees no more either unless a request takes longer to reach it. Rates with Bucket or
// Align promise what these fields say instead; the bucket of a Transport does not
// fill up, for a second at most, in place of what the server may not have seen.
//
// Units are taken from all accounts a request draws on in one step or from
// none, at the moment it is sent. Requests that wait hold no units and no place
// in time: whatever changes (a pause, a budget, a neighbour that gives up) plans
// all of them anew at once. Waits that certainly cannot end before the context's
// deadline or MaxWait are refused at once with an [*Error] that says how long they
// would have been; nothing is spent for them. Certain are budgets, pauses by hand,
// and waits and resets that the server stated. What was only found or guessed
// refuses nobody before that time is over, because a better estimate may come.
//
// # Who goes first
//
// Requests of one priority and lane go in the order in which they came; one
// that is retried by package retry keeps its place. Lanes of one priority take
// turns. A higher priority goes first, but of every 8 grants of a queue in which
// a lower one waits one is for the lower. A request that waits for one account
// (a route's budget) does not hold up those that do not need it, but no younger
// request of its class takes what it is short of.
//
// A request that a server refuses again while it serves others waits alone: it
// goes behind those that wait, and holds up nobody.
package throttle
