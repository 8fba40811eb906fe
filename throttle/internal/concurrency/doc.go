// Package concurrency learns how many requests at a time a host can serve.
//
// # Words
//
// A [Limit] is that number, for one kind of request or for a whole host; a [Joint] is one
// that several processes learn together. A request is under way from its start to the headers
// of its answer. A good answer is one by which the server does not say that it is too busy; a
// loss is a request that the host could not serve in time. A crowd is the requests under way
// when one more was refused because of them. A request that has been under way for longer
// than a patience does not count any more: it is old.
//
// # How it works
//
// The rules are those of TCP's congestion control, for requests. A limit starts small (slow
// start, RFC 5681) and grows with good answers. After a thousand of them, or when the server
// has stated limits of its own, there is no limit. A loss cuts it by three tenths (RFC 9438),
// once for all requests that were under way together, and step by step as these end (RFC
// 6937). A crowd shows the number itself; from time to time one more is tried.
//
// # Promises
//
// One request may always go. As long as nothing went wrong (there was neither a loss nor a
// crowd), a request that has been under way for a second is taken to be accepted and does not
// count any more. So long polls, or a host whose answers all take long, do not make other
// calls wait. After a loss, a request counts until it has been under way for far longer than
// usual. It never counts again if requests are answered that were sent after it. So a request
// that hangs does not hold up others, however often calls fail. If answers are known to be
// slow and nothing went wrong, requests at the configured rate are not held back.
//
// # Invariants
//
// There is no clock, no lock and no HTTP here. The owner of a Limit calls one method at a
// time, with instants that do not step back, and calls End once for each Start.
package concurrency
