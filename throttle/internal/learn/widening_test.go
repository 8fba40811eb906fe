package learn_test

import (
	"testing"

	"github.com/weirhttp/weir/throttle/internal/learn"
)

// TestMoreRequestsAtATimeAreFound: when a server works on more at a time than before, those
// who wait have them after some tries, whatever it says, and few are refused meanwhile.
func TestMoreRequestsAtATimeAreFound(t *testing.T) {
	const work = second / 5
	for _, h := range []habit{habits[0], habits[4]} {
		for _, c := range []struct{ was, is int }{{1, 3}, {2, 4}, {2, 20}, {4, 12}, {8, 32}} {
			by := &crowded{size: c.was, work: work}
			p := newPlay(by, work, h, 4*c.is)
			p.work = work
			p.until(zero + 60*second)
			by.size = c.is
			_, refused := p.until(zero + 180*second)
			served, after := p.until(zero + 210*second)
			// Once as many as those who wait are refused at most: a climb may let all of them go.
			if most := 30 * c.is * int(second) / int(work+trip); served < most*95/100 || refused+after > 4*c.is {
				t.Errorf("%d instead of %d at a time, says %s: %d of some %d are served and %d refused: %v", c.is, c.was, h.name, served, most, refused+after, p.l.Likeliest())
			}
		}
	}
}

// TestATryForMoreAtATimeCostsOneRefusal: as long as a server works on no more at a time
// than before, one is refused now and then, each twice as long after the one before, and
// nobody else waits for it.
func TestATryForMoreAtATimeCostsOneRefusal(t *testing.T) {
	const work, size = second / 5, 5
	for _, h := range []habit{habits[0], habits[4]} {
		p := newPlay(&crowded{size: size, work: work}, work, h, 20)
		p.work = work
		p.until(zero + 60*second)
		was := p.l.Likeliest()
		var gaps []int // seconds between two that were refused
		since := 0
		served := 0
		for i := range 600 {
			n, refused := p.until(zero + 60*second + learn.Instant(i+1)*second)
			served += n
			if refused > 1 {
				t.Errorf("says %s: %d refused at once", h.name, refused)
			}
			if since++; refused > 0 {
				gaps, since = append(gaps, since), 0
			}
		}
		if most := int(600 * size * second / (work + trip)); served < most*98/100 {
			t.Errorf("says %s: %d of some %d are served", h.name, served, most)
		}
		if len(gaps) < 2 || len(gaps) > 8 || 3*gaps[1] > 4*gaps[len(gaps)-1] {
			t.Errorf("says %s: refused after %v s", h.name, gaps)
		}
		if is := p.l.Likeliest(); is != was {
			t.Errorf("says %s: %s, and after tries %s", h.name, was, is)
		}
	}
}
