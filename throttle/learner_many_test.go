package throttle

import "testing"

// This looks inside: that one who waits keeps the learner that he waits for shows only
// in what is lost of a later answer.

// Credentials beyond the most that are told apart share one learner, unless
// one of which nothing binds makes room.
func TestCredentialsBeyondTheMost(t *testing.T) {
	one := learning1()
	tr := &Transport{learning: one.terms}
	tr.budgets.Store(&budgets{})
	m := &learned{}
	of := func(i int) *learner {
		return m.learner(hourIn, tr, &record{host: "a"}, one.host, &ask{credential: uint64('a' + i)})
	}
	for i := range maxCredentials {
		of(i).cooldown = pausedUntil(at0(sec))
	}
	a := of(maxCredentials)
	if m.other != a || of(maxCredentials+1) != a || len(m.by) != maxCredentials {
		t.Errorf("%d apart", len(m.by))
	}
	n := 0
	if m.all(func(*learner) { n++ }); n != maxCredentials+1 {
		t.Errorf("%d in all", n)
	}
	if m.drop(hourIn) || m.idle(hourIn) {
		t.Error("one that is paused is forgotten")
	}
	l := of(7)
	l.cooldown = nil
	leave := waitFor(&l.account)
	if m.drop(hourIn) {
		t.Error("one that is waited for is forgotten")
	}
	leave()
	b := of(maxCredentials)
	if b.cooldown = pausedUntil(at0(sec)); b == a || len(m.by) != maxCredentials || of(7) != a {
		t.Error("no room was made")
	}
	m = &learned{by: []*learner{learning1()}}
	if !m.idle(hourIn) {
		t.Error("nothing binds")
	}
	leave = waitFor(&m.by[0].account)
	if m.idle(hourIn) {
		t.Error("somebody waits")
	}
	leave()
	m.other = learning1()
	if m.other.cooldown = pausedUntil(at0(sec)); m.idle(hourIn) {
		t.Error("the rest is paused")
	}
}
