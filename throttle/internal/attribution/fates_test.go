package attribution_test

import (
	"testing"

	"github.com/weirhttp/weir/throttle/internal/attribution"
)

// A refusal follows the request if others were served since it was refused last, and
// so many refusals in a row are no chance: where nobody else is refused, two.
func TestRefusalsOfARequestsOwn(t *testing.T) {
	for _, test := range []struct {
		name    string
		others  int  // refused before, of a thousand
		served  bool // between any two refusals
		full    bool // the refusals were for requests under way
		refused int  // times in a row until it is its own; 0: never
	}{
		{"nobody else is refused", 0, true, false, 2},
		{"nobody was served since", 0, false, false, 0},
		{"others were under way", 0, true, true, 0},
		{"one in fifty is refused", 20, true, false, 3},
		{"one in five is", 200, true, false, 6},
	} {
		var f attribution.Fates
		for range 500 - test.others/2 {
			f.Served(zero)
		}
		for range test.others / 2 {
			f.Refused(zero, attribution.Refused{Request: new(attribution.Request)})
		}
		var r attribution.Request
		got, now := 0, zero
		for i := range 20 {
			now++
			if own, _ := f.Refused(now, attribution.Refused{Request: &r, Others: test.full}); own != nil {
				got = i + 1
				break
			}
			if now++; test.served {
				f.Served(now)
			}
		}
		if got != test.refused {
			t.Errorf("%s: its own by refusal %d, want %d", test.name, got, test.refused)
		}
		if n := r.Refusals(); got > 0 && n != got {
			t.Errorf("%s: %d refusals, want %d", test.name, n, got)
		}
	}
}

// What refusals have taught is nothing once all requests that had a part in it prove
// to have refusals of their own; another's leave something.
func TestWhatAloneWasTaughtIsTakenBack(t *testing.T) {
	for others, want := range map[int]bool{0: true, 1: false} {
		f := attribution.FatesOf(500)
		var r attribution.Request
		f.Refused(zero, attribution.Refused{Request: &r, Fresh: true})
		for range others {
			f.Refused(zero, attribution.Refused{Request: new(attribution.Request)})
		}
		now, own, untaught := zero, (*attribution.Request)(nil), false
		for range 3 {
			f.Served(now + 1)
			now += 2
			if own, untaught = f.Refused(now, attribution.Refused{Request: &r}); own != nil {
				break
			}
		}
		if own == nil || untaught != want {
			t.Errorf("%d others: its own %t, nothing is left %t", others, own != nil, untaught)
		}
		f.Served(now + 1)
		if _, again := f.Refused(now+2, attribution.Refused{Request: &r}); again {
			t.Errorf("%d others: taken back twice", others)
		}
	}
}
