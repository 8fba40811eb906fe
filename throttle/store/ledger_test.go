package store

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var ledgerNow = time.Unix(1_800_000_000, 0)

// ledgerLimit is a limit and what it promises.
type ledgerLimit struct {
	name  string
	limit Limit
	per   time.Duration
	most  func(w time.Duration) float64 // units in any half-open window w
}

func ledgerLimits() []ledgerLimit {
	atMost := func(n float64) func(time.Duration) float64 { return func(time.Duration) float64 { return n } }
	return []ledgerLimit{
		{"safe meter", Limit{ID: "a", Kind: MeterLimit, Size: 5, Rate: 15.0 / 2, Credit: 15}, 2 * time.Second, atMost(20)},
		{"leaky", Limit{ID: "b", Kind: MeterLimit, Size: 1, Rate: 9, Credit: 9}, time.Second, atMost(10)},
		{"bucket", Limit{ID: "c", Kind: MeterLimit, Size: 8, Rate: 4}, 3 * time.Second,
			func(w time.Duration) float64 { return 8 + 4*w.Seconds() }},
		{"log", Limit{ID: "d", Kind: LogLimit, Size: 12, Per: time.Second}, time.Second, atMost(12)},
		{"log with a grain", Limit{ID: "e", Kind: LogLimit, Size: 30, Per: time.Second, Grain: 50 * time.Millisecond}, time.Second, atMost(30)},
	}
}

// ledgerSent is a request that was booked and not cancelled.
type ledgerSent struct {
	at    int64
	units float64
	gone  bool
}

// TestLedgerPromises books, waits and cancels at random, and holds each limit
// to what it promises by the instants at which requests start.
func TestLedgerPromises(t *testing.T) {
	for _, tc := range ledgerLimits() {
		t.Run(tc.name, func(t *testing.T) {
			for seed := range uint64(30) {
				sent := ledgerRun(t, rand.New(rand.NewPCG(seed, 1)), tc.limit, seed%2 == 0)
				total := 0.0
				for i, from := range sent {
					sum := 0.0
					for _, s := range sent[i:] {
						if s.at < from.at+tc.per.Microseconds() && !s.gone {
							sum += s.units
						}
					}
					if most := tc.most(tc.per); sum > most+1e-6 {
						t.Fatalf("seed %d: %v units within %v, want at most %v", seed, sum, tc.per, most)
					}
					if !from.gone {
						total += from.units
					}
				}
				if total == 0 {
					t.Fatalf("seed %d: nothing was granted", seed)
				}
			}
		})
	}
}

// ledgerRun books at random. Without cancellations bookings start in their order;
// one that takes a cancelled one's place may start before others.
func ledgerRun(t *testing.T, r *rand.Rand, limit Limit, cancels bool) []ledgerSent {
	now := time.Unix(1_800_000_000, 0)
	var ls [1]Ledger
	var sent []ledgerSent
	for range 400 {
		if r.IntN(3) > 0 {
			now = now.Add(time.Duration(r.Int64N(int64(200 * time.Millisecond))))
		}
		if r.IntN(40) == 0 {
			now = now.Add(5 * time.Second)
		}
		first := int64(1 + r.IntN(3))
		if limit.Credit > 0 && r.IntN(10) == 0 {
			first = int64(limit.Size) + int64(r.IntN(int(limit.Credit))) // above the burst
		}
		b := Booking{MaxWait: time.Duration(r.IntN(3)) * 500 * time.Millisecond, Draws: []Draw{{
			Key: "k", Limits: []Limit{limit}, Units: []UnitCost{{"requests", first, first * int64(1+r.IntN(3))}},
		}}}
		next, k := Book(now, ls[:], b)
		if next == nil {
			continue
		}
		ls[0] = next[0]
		units := b.Draws[0].Units[0].First
		if k.Outcome == BookedAll {
			units = b.Draws[0].Units[0].All
		}
		if n := len(sent); n > 0 && !cancels && k.Ready < sent[n-1].at {
			t.Fatalf("a later booking starts %d µs before an earlier one", sent[n-1].at-k.Ready)
		}
		sent = append(sent, ledgerSent{at: k.Ready, units: float64(units)})
		if cancels && r.IntN(4) == 0 { // cancelled, before it starts or a while after
			age := time.Duration(r.Int64N(int64(time.Second)))
			late := now.Add(age)
			ls[0] = ls[0].AfterRefund(late, k.Refund(b, 0, []int64{units}, nil))
			now = late
			sent[len(sent)-1].gone = true
		}
	}
	slices.SortFunc(sent, func(a, b ledgerSent) int { return cmp.Compare(a.at, b.at) })
	return sent
}

// TestLedgerStates: when a ledger is idle, and that operations leave the state
// they are given alone.
func TestLedgerStates(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	limit := Limit{ID: "m", Kind: MeterLimit, Size: 5, Rate: 5}
	b := Booking{Draws: []Draw{{Key: "k", Limits: []Limit{limit}, Units: []UnitCost{{"requests", 5, 5}}}}}
	next, _ := Book(now, []Ledger{{}}, b)
	if !(Ledger{}).Idle(now) || next[0].Idle(now.Add(1999*time.Millisecond)) || !next[0].Idle(now.Add(2*time.Second)) {
		t.Errorf("a ledger of one second's level should be idle a second after that, and is by %d", next[0].Expires-now.UnixMicro())
	}
	before := next[0].Accounts[0].Level
	if refused, r := Book(now, next, b); refused != nil || r.Outcome != Refused || next[0].Accounts[0].Level != before {
		t.Errorf("a refusal wrote: %+v", refused)
	}
	after := next[0].AfterRefund(now, Refund{Key: "k", Gen: next[0].Gen, At: now.UnixMicro(), Limits: []Limit{limit}, Units: []float64{3}, Held: []float64{5}})
	if after.Accounts[0].Level != 2 || next[0].Accounts[0].Level != 5 {
		t.Errorf("a refund of 3 of 5 left %v, and the old state at %v", after.Accounts[0].Level, next[0].Accounts[0].Level)
	}
}

// TestRefundsOfAnotherStateAreIgnored: what was booked in a state that is lost is not given
// back to the one that has followed it.
func TestRefundsOfAnotherStateAreIgnored(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	limit := Limit{ID: "m", Kind: MeterLimit, Size: 5, Rate: 5}
	b := Booking{Draws: []Draw{{Key: "k", Limits: []Limit{limit}, Units: []UnitCost{{"requests", 5, 5}}}}}
	next, _ := Book(now, []Ledger{{}}, b)
	for gen, want := range map[int64]float64{next[0].Gen: 2, next[0].Gen - 1: 5, next[0].Gen + 1: 5, 0: 5} {
		r := Refund{Key: "k", Gen: gen, At: now.UnixMicro(), Limits: []Limit{limit}, Units: []float64{3}, Held: []float64{5}}
		if got := next[0].AfterRefund(now, r).Accounts[0].Level; got != want {
			t.Errorf("a refund for state %d of %d leaves %v in use, want %v", gen, next[0].Gen, got, want)
		}
	}
}

// TestLedgerClock: set back, nobody stalls and nothing is minted; set ahead, a
// meter gains its size at most.
func TestLedgerClock(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, tc := range ledgerLimits() {
		b := Booking{Draws: []Draw{{Key: "k", Limits: []Limit{tc.limit}, Units: []UnitCost{{"requests", 1, 1}}}}}
		spend := func(now time.Time, ls []Ledger) (next []Ledger, n int, wait time.Duration) {
			for {
				after, r := Book(now, ls, b)
				if r.Outcome == Refused {
					return ls, n, r.Wait
				}
				ls, n = after, n+1
			}
		}
		ls, n, wait := spend(now, []Ledger{{}})
		_, again, waitBack := spend(now.Add(-time.Hour), ls)
		if again > 0 || waitBack > wait {
			t.Errorf("%s: an hour back %d more were granted and the wait was %v, want none and at most %v", tc.name, again, waitBack, wait)
		}
		if _, more, _ := spend(now.Add(time.Hour), ls); more > n {
			t.Errorf("%s: an hour ahead %d were granted, want at most %d", tc.name, more, n)
		}
	}
}

// micro is a time by a ledger's clock.
func micro(at int64) time.Time { return time.UnixMicro(at) }

// asking is a booking of one request, or n, on one limit.
func asking(l Limit, n int64) Booking {
	return Booking{Draws: []Draw{{Key: "k", Limits: []Limit{l}, Units: []UnitCost{{Unit: "requests", First: 1, All: n}}}}}
}

// A refusal writes nothing, unless the clock stepped back: what is dated has to
// be dated anew then, were it by a microsecond.
func TestLedgerRefusalWrites(t *testing.T) {
	const at = 1_800_000_000_000_000
	l := Limit{ID: "l", Kind: LogLimit, Size: 2, Per: time.Second}
	full, r := Book(micro(at), make([]Ledger, 1), asking(l, 2))
	if r.Outcome != BookedAll {
		t.Fatal(r.Outcome)
	}
	for back, writes := range map[int64]bool{-1: false, 0: false, 1: true, 2: true} {
		next, r := Book(micro(at-back), full, asking(l, 1))
		if r.Outcome != Refused || (next != nil) != writes {
			t.Errorf("a clock %d µs back: %v, %d written", back, r.Outcome, len(next))
		}
		if writes && next[0].Accounts[0].Entries[0].At != at-back {
			t.Errorf("a clock %d µs back: the entry stands at %d, want %d", back, next[0].Accounts[0].Entries[0].At, at-back)
		}
	}
}

// bookOn books units of one log or meter and returns the ledger and the reply.
func bookOn(l Ledger, now time.Time, maxWait time.Duration, n int64, limits ...Limit) (Ledger, Booked) {
	next, r := Book(now, []Ledger{l}, Booking{MaxWait: maxWait,
		Draws: []Draw{{Key: "k", Limits: limits, Units: []UnitCost{{"u", n, n}}}}})
	if next == nil {
		return l, r
	}
	return next[0], r
}

// A refund touches the limits it names, as far as they are known, and no other.
func TestRefundOfSomeLimits(t *testing.T) {
	meter := Limit{ID: "a", Kind: MeterLimit, Size: 10, Rate: 1}
	log := Limit{ID: "a", Kind: LogLimit, Size: 10, Per: time.Second}
	other := Limit{ID: "b", Kind: LogLimit, Size: 10, Per: time.Second}
	l, r := bookOn(Ledger{}, ledgerNow, 0, 4, meter, log, other)
	l = l.AfterRefund(ledgerNow, Refund{Key: "k", Gen: l.Gen, Ready: r.Ready,
		Limits: []Limit{log, {ID: "c", Kind: LogLimit, Size: 1, Per: 1}, meter}, Units: []float64{3, 3, 0}})
	_, r = bookOn(l, ledgerNow, 0, 0, meter, log, other)
	if got := r.Keys[0].Levels; !slices.Equal(got, []float64{4, 1, 4}) {
		t.Errorf("levels %v, want 4, 1 and 4", got)
	}
}

// With two keys the first request goes if the batch does not fit but it does,
// and nothing is booked ahead.
func TestTwoKeysAreBookedTogether(t *testing.T) {
	limit := Limit{ID: "m", Kind: MeterLimit, Size: 5, Rate: 1}
	b := Booking{MaxWait: time.Minute, Draws: []Draw{
		{Key: "a", Limits: []Limit{limit}, Units: []UnitCost{{"u", 3, 9}}},
		{Key: "b", Limits: []Limit{limit}, Units: []UnitCost{{"u", 3, 9}}},
	}}
	next, r := Book(ledgerNow, make([]Ledger, 2), b)
	if r.Outcome != BookedOne || r.Wait != 0 || r.Draw != -1 {
		t.Fatalf("got %+v, want the first one now", r)
	}
	if _, r = Book(ledgerNow, next, b); r.Outcome != Refused || r.Wait != time.Second || r.Draw != 0 || r.Limit != 0 {
		t.Errorf("got %+v, want a wait of 1s at the first of two that are as short", r)
	}
	b.Draws = b.Draws[:1]
	if _, r = Book(ledgerNow, next[:1], b); r.Outcome != BookedOne || r.Wait != time.Second {
		t.Errorf("got %+v, want one booked 1s ahead", r)
	}
}
