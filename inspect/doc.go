// Package inspect shows what a weir.Transport is doing. It has a live page that says
// why calls wait, and the same as JSON.
//
//	http.Handle("/weir/", http.StripPrefix("/weir", inspect.Handler(t, inspect.Config{})))
//
// serves
//
//	GET /            the page; it works offline
//	GET /stats.json  all hosts
//	GET /events      server-sent events, one a second: what the page shows
//
// With [Config].Limiters it also shows the keys of throttle.Limiters, and with
// Config.Outbox what package outbox keeps, by queue.
//
// It only reads, unless Config.Controls is set.
//
// It answers requests whose Host is a loopback name or one of Config.AllowHosts, and
// that have no headers of a proxy. So a page in a browser cannot reach it under a
// name that somebody else points at this machine, and others cannot reach it
// through a proxy on this machine that adds such headers. (Not every proxy does.)
// The page shows no secrets. Nevertheless, if others can reach the address, put a
// handler around it that checks who asks, and that removes the headers of your own
// proxy.
//
// Nothing runs in the background, so the history begins when the page is first
// opened. While the page is open, its request does not end: give http.Server.Shutdown
// a deadline.
package inspect
