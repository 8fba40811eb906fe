package testnet

import (
	"net/http"
	"testing"
)

// Server runs h on a network in memory. It speaks HTTP/1.1, or HTTP/2 without TLS if
// http2 is set. base reaches it under any host name, and n counts the connections. The
// caller calls stop in the same bubble: when it returns no goroutine of Server is left.
func Server(t testing.TB, h http.Handler, http2 bool) (base *http.Transport, n *Net, stop func()) {
	t.Helper()
	n = New()
	var protocols http.Protocols
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	s := &http.Server{Handler: h, Protocols: &protocols}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Serve(n)
	}()
	base = &http.Transport{DialContext: n.DialContext, Protocols: &protocols, MaxIdleConnsPerHost: 100}
	return base, n, func() {
		base.CloseIdleConnections()
		s.Close()
		n.Close()
		<-done
	}
}
