package queue

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// What is drawn at once is what is charged where there is room, of rates of every kind.
func TestDrawChargesWhereThereIsRoom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 11))
	drawn, all := 0, 0
	for range 300 {
		spec := meter.Spec{Limit: 1 + rng.IntN(20), Per: time.Second, Unit: "requests", Bucket: rng.IntN(3) == 0}
		spec.Burst = 1 + rng.IntN(spec.Limit)
		switch rng.IntN(6) {
		case 0:
			spec.WarmUp = time.Second
		case 1:
			spec.Align, spec.Bucket = time.UTC, false
		}
		var accounts [2]*Account
		for i := range accounts {
			accounts[i] = &Account{Meter: meter.NewRated(1, meter.NewRate(spec), &meter.Wall{}), Label: &Label{Unit: "requests", Rate: meter.NewRate(spec)}}
		}
		now := meter.Instant(1)
		var out []Need
		var granted []meter.Instant
		for range 60 {
			now = now.Add(time.Duration(rng.IntN(200)) * time.Millisecond)
			if rng.IntN(20) == 0 {
				accounts[0].Paused, accounts[1].Paused = now+1e8, now+1e8
			}
			n, held := int64(rng.IntN(3)), rng.IntN(4) > 0
			once, twice := []Need{{Account: accounts[0], N: n}}, []Need{{Account: accounts[1], N: n}}
			got, want := Draw(now, once, held), Room(now, twice)
			if want {
				Charge(now, twice, held)
			}
			for _, a := range accounts { // Room looks at all of a meter, also if a part of it has no room
				a.Meter.At(now, 1)
			}
			if got != want || once[0].Token != twice[0].Token || !reflect.DeepEqual(accounts[0].Meter, accounts[1].Meter) {
				t.Fatalf("%+v: drew %d at %d: %t, token %d, want %t, %d\n%+v\nwant\n%+v", spec, n, now, got, once[0].Token, want, twice[0].Token, accounts[0].Meter, accounts[1].Meter)
			}
			if all++; !got {
				continue
			}
			if drawn++; held {
				out, granted = append(out, once[0]), append(granted, now)
			}
			if len(out) > 0 && rng.IntN(2) == 0 {
				for _, a := range accounts {
					a.Meter.Answered(now, out[0].N, out[0].Token, granted[0])
				}
				out, granted = out[1:], granted[1:]
			}
		}
	}
	if drawn < all/4 || drawn > all*9/10 {
		t.Errorf("%d of %d were drawn", drawn, all)
	}
}
