package throttle

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// ledgerLimit is a limit and what it promises.
type ledgerLimit struct {
	name  string
	limit StoreLimit
	per   time.Duration
	most  func(w time.Duration) float64 // units in any half-open window w
}

func ledgerLimits() []ledgerLimit {
	atMost := func(n float64) func(time.Duration) float64 { return func(time.Duration) float64 { return n } }
	return []ledgerLimit{
		{"safe meter", StoreLimit{ID: "a", Kind: MeterLimit, Size: 5, Rate: 15.0 / 2, Credit: 15}, 2 * time.Second, atMost(20)},
		{"leaky", StoreLimit{ID: "b", Kind: MeterLimit, Size: 1, Rate: 9, Credit: 9}, time.Second, atMost(10)},
		{"bucket", StoreLimit{ID: "c", Kind: MeterLimit, Size: 8, Rate: 4}, 3 * time.Second,
			func(w time.Duration) float64 { return 8 + 4*w.Seconds() }},
		{"log", StoreLimit{ID: "d", Kind: LogLimit, Size: 12, Per: time.Second}, time.Second, atMost(12)},
		{"log with a grain", StoreLimit{ID: "e", Kind: LogLimit, Size: 30, Per: time.Second, Grain: 50 * time.Millisecond}, time.Second, atMost(30)},
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
func ledgerRun(t *testing.T, r *rand.Rand, limit StoreLimit, cancels bool) []ledgerSent {
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
			Key: "k", Limits: []StoreLimit{limit}, Units: []UnitCost{{"requests", first, first * int64(1+r.IntN(3))}},
		}}}
		next, k := BookLedgers(now, ls[:], b)
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
			ls[0] = ls[0].AfterRefund(late, k.Refund(b, 0, []int64{units}, age, nil))
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
	limit := StoreLimit{ID: "m", Kind: MeterLimit, Size: 5, Rate: 5}
	b := Booking{Draws: []Draw{{Key: "k", Limits: []StoreLimit{limit}, Units: []UnitCost{{"requests", 5, 5}}}}}
	next, _ := BookLedgers(now, []Ledger{{}}, b)
	if !(Ledger{}).Idle(now) || next[0].Idle(now.Add(1999*time.Millisecond)) || !next[0].Idle(now.Add(2*time.Second)) {
		t.Errorf("a ledger of one second's level should be idle a second after that, and is by %d", next[0].Expires-now.UnixMicro())
	}
	before := next[0].Accounts[0].Level
	if refused, r := BookLedgers(now, next, b); refused != nil || r.Outcome != Refused || next[0].Accounts[0].Level != before {
		t.Errorf("a refusal wrote: %+v", refused)
	}
	after := next[0].AfterRefund(now, Refund{Key: "k", Gen: next[0].Gen, Limits: []StoreLimit{limit}, Units: []float64{3}})
	if after.Accounts[0].Level != 2 || next[0].Accounts[0].Level != 5 {
		t.Errorf("a refund of 3 of 5 left %v, and the old state at %v", after.Accounts[0].Level, next[0].Accounts[0].Level)
	}
}

// TestLedgerClock: set back, nobody stalls and nothing is minted; set ahead, a
// meter gains its size at most.
func TestLedgerClock(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, tc := range ledgerLimits() {
		b := Booking{Draws: []Draw{{Key: "k", Limits: []StoreLimit{tc.limit}, Units: []UnitCost{{"requests", 1, 1}}}}}
		spend := func(now time.Time, ls []Ledger) (next []Ledger, n int, wait time.Duration) {
			for {
				after, r := BookLedgers(now, ls, b)
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
