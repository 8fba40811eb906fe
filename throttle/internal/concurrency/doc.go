// Package concurrency learns how many requests at a time a host bears.
//
// # Words
//
// A [Limit] is that number, for one kind of request or for a whole host. A request is
// under way from its start to the headers of its answer. A good answer is one that no
// server was too busy for; a loss is a request that the host could not serve in time. A
// crowd is what was under way when one more was refused because of the others.
//
// # How it works
//
// It is TCP's congestion control, for requests. A limit starts slowly (RFC 5681) and
// grows with good answers until a thousand have proved the host, or the server has
// stated limits of its own; then there is none. A loss cuts it by three tenths (RFC
// 9438), once for all that were under way together, as they end (RFC 6937). A crowd
// shows the number itself, which is tried again from time to time.
//
// # Promises
//
// One request may always go. As long as nothing went wrong, a request that has been under
// way for a second was accepted and does not count any more: neither long polls nor a host
// whose answers all take long make other calls wait. After a loss, a request counts until
// it has been under way for far longer than usual. It never counts again if requests are
// answered that were sent after it. So a request that hangs does not hold up the others,
// however often calls fail. Where answers are known to be slow and nothing went wrong,
// requests at the configured rate are not held back.
//
// # Invariants
//
// There is no clock, no lock and no HTTP here. Who owns a Limit calls one method at a
// time, with instants that do not step back; what Start counts, End ends once.
package concurrency
