package throttle

import (
	"math"
	"testing"
	"time"
)

// These look inside: the rates along a curve show at the surface only blurred by what
// refusals teach beside it.

// TestAPaceReactsOncePerBurst: what was sent before the first refusal was heard is the
// same event.
func TestAPaceReactsOncePerBurst(t *testing.T) {
	var f pace
	f.refuse(at0(time.Second), at0(990*time.Millisecond), 100, 0, 0)
	rate := f.rate
	if rate < 80 || rate > 90 {
		t.Errorf("rate %v after 100/s were accepted, want 85", rate)
	}
	for range 50 {
		f.refuse(at0(1010*time.Millisecond), at0(995*time.Millisecond), 100, 0, 0)
	}
	if f.rate != rate {
		t.Errorf("rate fell to %v", f.rate)
	}
}

// TestAPaceGrowsAlongACurveWithoutScale: after K the rate is where it was refused, after
// twice that twice as high, and a rate that is not used stands still.
func TestAPaceGrowsAlongACurveWithoutScale(t *testing.T) {
	for _, top := range []float64{1, 50, 5000} {
		used := func(busy bool, after time.Duration) float64 {
			f := pace{rate: restartAt * top, top: top, low: restartAt * top, k: firstK}
			f.resume(at0(0))
			for now := time.Duration(0); now <= after; now += 50 * time.Millisecond {
				if busy {
					f.sent = 1e9
				}
				f.grow(at0(now))
			}
			return f.rate / top
		}
		for _, c := range []struct {
			busy  bool
			after time.Duration
			want  float64
		}{{true, 0, 0.85}, {true, firstK, 1}, {true, 2 * firstK, 2}, {false, 2 * firstK, 0.85}} {
			if !c.busy && top < 5 {
				continue // use is judged by four requests at least
			}
			if got := used(c.busy, c.after); math.Abs(got-c.want) > 0.06 {
				t.Errorf("top %v, used %v: after %v %.2f of it, want %.2f", top, c.busy, c.after, got, c.want)
			}
		}
	}
}
