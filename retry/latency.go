package retry

import (
	"math/bits"
	"sync"
	"time"
)

const (
	perOctave  = 4                     // so a quantile is at most a quarter too large
	octaves    = 18                    // from 1 ms to over four minutes
	minSamples = 100                   // of fewer, fewer than five lie above a quantile of 0.95
	maxSamples = 1000                  // then all count half
	minHedge   = 10 * time.Millisecond // sooner, a timer that is late would hedge
)

// latency learns how long a host's first tries take from the wire to their
// headers, as a histogram with four classes per octave. Old samples fade.
type latency struct {
	mu    sync.Mutex
	n     uint32
	count *[octaves * perOctave]uint32
}

// class is the histogram's class of a latency.
func class(d time.Duration) int {
	ms := uint64(max(d, 0)/(time.Millisecond/perOctave)) + perOctave // in quarters; the first octave starts at 4
	octave := bits.Len64(ms) - 3
	return min(octave*perOctave+int(ms>>octave)-perOctave, octaves*perOctave-1)
}

// upper is the least latency above a class.
func upper(class int) time.Duration {
	octave, part := class/perOctave, class%perOctave
	quarters := uint64(perOctave+part+1)<<octave - perOctave
	return time.Duration(quarters) * (time.Millisecond / perOctave)
}

func (l *latency) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count == nil {
		l.count = new([octaves * perOctave]uint32)
	}
	l.count[class(d)]++
	if l.n++; l.n < maxSamples {
		return
	}
	l.n = 0
	for i := range l.count {
		l.count[i] /= 2
		l.n += l.count[i]
	}
}

// quantile is the latency that a share q of the samples does not exceed; ok is
// false until enough are known.
func (l *latency) quantile(q float64) (d time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n < minSamples {
		return 0, false
	}
	need := uint32(q * float64(l.n))
	var sum uint32
	for i, n := range l.count {
		if sum += n; sum > need {
			return max(upper(i), minHedge), true
		}
	}
	return upper(len(l.count) - 1), true
}
