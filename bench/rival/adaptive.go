package rival

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/weirhttp/weir/bench/wait"
)

// Adaptive is the adaptive retry mode of the AWS SDKs, made again from its
// published description: a token bucket whose rate follows a cubic curve. It
// reads no headers.
func Adaptive() Rival {
	return plain("AWS adaptive", "https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html", func() (pacing, func() float64) {
		a := &adaptive{bin: math.Floor(unix()*2) / 2}
		return a, a.rate
	})
}

type adaptive struct {
	mu        sync.Mutex
	on        bool
	fill      float64 // tokens per second
	capacity  float64
	tokens    float64
	last      time.Time
	measured  float64
	bin       float64
	requests  float64
	top       float64
	throttled time.Time
	window    float64
}

func unix() float64 { return float64(time.Now().UnixNano()) / 1e9 }

const (
	awsBeta   = 0.7
	awsScale  = 0.4
	awsSmooth = 0.8
)

func (a *adaptive) alone() bool { return true }

// rate is what it sends at most per second; zero: no limit yet.
func (a *adaptive) rate() float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.on {
		return 0
	}
	return a.fill
}

func (a *adaptive) enter(ctx context.Context) error {
	for d := a.acquire(); d > 0; d = a.acquire() {
		if err := wait.For(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// acquire takes a token, or says after how long to ask again.
func (a *adaptive) acquire() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.on {
		return 0
	}
	a.refill()
	if a.tokens >= 1-1e-9 {
		a.tokens--
		return 0
	}
	return max(time.Microsecond, time.Duration((1-a.tokens)/a.fill*float64(time.Second)))
}

func (a *adaptive) refill() {
	now := time.Now()
	if !a.last.IsZero() {
		a.tokens = min(a.capacity, a.tokens+now.Sub(a.last).Seconds()*a.fill)
	}
	a.last = now
}

func (a *adaptive) heard(throttled bool, _ time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.measure()
	a.window = math.Cbrt(a.top * (1 - awsBeta) / awsScale)
	target := awsScale*math.Pow(time.Since(a.throttled).Seconds()-a.window, 3) + a.top
	if throttled {
		from := a.measured
		if a.on {
			from = min(a.measured, a.fill)
		}
		a.top, a.throttled, a.on = from, time.Now(), true
		target = from * awsBeta
	}
	next := min(target, 2*a.measured)
	a.refill()
	a.fill = max(next, 0.5)
	a.capacity = max(next, 1)
	a.tokens = min(a.tokens, a.capacity)
}

// measure counts requests in bins of half a second.
func (a *adaptive) measure() {
	bin := math.Floor(unix()*2) / 2
	a.requests++
	if bin > a.bin {
		a.measured = a.requests/(bin-a.bin)*awsSmooth + a.measured*(1-awsSmooth)
		a.requests, a.bin = 0, bin
	}
}
