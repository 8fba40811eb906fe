// Package inspect shows what a weir.Transport is doing: a live page that
// answers "why is my call waiting", and the same as JSON.
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
// The page shows no secrets. Put it behind your own authentication all the same if
// others can reach the address: a handler around it, which removes the headers of
// your own proxy.
//
// Nothing runs in the background. History begins when somebody first looks. A
// page that is open is a request under way: give http.Server.Shutdown a deadline.
package inspect
