package throttle

import (
	"net/http"
	"os"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/table"
	"github.com/weirhttp/weir/internal/testnet"
)

// These look inside, as how many entries are looked at to find room shows in no result.

const spenders = 1000 // keys whose budget is spent for weeks

// multitude is how many keys are touched and how many are kept. A million, and the
// default MaxKeys, take ten seconds and more: they are for a run that asks for them
// by WEIR_MILLION=1, as that of ci/test.sh does.
func multitude() (keys, kept int) {
	if os.Getenv("WEIR_MILLION") == "" {
		return 50000, 10000
	}
	return 1000000, 100000
}

// watched counts how often an entry is looked at to find one to evict.
func watched[V any](looks *int, idle func(*V, time.Time) bool) func(*V, time.Time) bool {
	return func(v *V, now time.Time) bool {
		*looks++
		return idle(v, now)
	}
}

// visits touches a million keys once each. What it is given spends one unit of
// a key and reports whether that was there.
type visits struct {
	t     *testing.T
	take  func(key string) bool
	looks *int
	kept  func() int
	size  int // bytes that a key takes at most
}

func heapNow() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func (v visits) run() {
	t := v.t
	spent := func(want bool) {
		for i := range spenders {
			if v.take("spent"+strconv.Itoa(i)) != want {
				t.Fatalf("spent%d: granted is %t, want %t: spent accounts are held, no others", i, !want, want)
			}
		}
	}
	keys, kept := multitude()
	before := heapNow()
	spent(true)
	most := 0
	for i := range keys {
		was := *v.looks
		if !v.take("once" + strconv.Itoa(i)) {
			t.Fatalf("key %d is refused", i)
		}
		most = max(most, *v.looks-was)
		if i%1000 == 0 {
			time.Sleep(time.Second) // what those before spent comes back
		}
	}
	spent(false)
	if n := v.kept(); n > kept {
		t.Errorf("%d keys are kept, want at most %d", n, kept)
	}
	grown := heapNow() - before
	t.Logf("%d keys: heap grown by %d KiB, %.2f looks a key, at most %d", keys, grown>>10, float64(*v.looks)/float64(keys), most)
	if grown > int64(kept*v.size) {
		t.Errorf("the heap grew by %d bytes, want at most %d for each of %d keys", grown, v.size, kept)
	}
	if *v.looks > 2*keys {
		t.Errorf("%d entries were looked at to make room for %d keys, want at most 2 a key", *v.looks, keys)
	}
}

// TestMillionKeysOfALimiter: a million keys touched once each take no more
// memory than MaxKeys do; what is spent is not forgotten for them, and finding
// those to forget takes a step or two each.
func TestMillionKeysOfALimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budgets := make(map[string]Budget)
		for i := range spenders {
			budgets["spent"+strconv.Itoa(i)] = MustParseBudget("1/30d")
		}
		l, err := NewLimiter(LimiterConfig{Default: MustParseBudget("2/s"), Budgets: budgets})
		if err != nil {
			t.Fatal(err)
		}
		looks := 0
		_, size := multitude()
		l.keys = table.New(size, func(string) kept { return kept{} }, watched(&looks, l.idle))
		visits{t, func(key string) bool { return l.Try(key, nil).Allowed }, &looks, l.keys.Len, 768}.run()
		runtime.KeepAlive(l)
	})
}

// TestMillionHosts is the same for the hosts of a Transport that learns.
func TestMillionHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: http.NoBody, Request: r}, nil
		}), Config{
			Default: MustParseBudget("2/s"), MaxWait: -1,
			Budgets: map[string]Budget{"*.spent.example": MustParseBudget("1/30d")},
		})
		looks := 0
		_, kept := multitude()
		tr.hosts.Table = table.New(kept, func(string) hosts.Host { return hosts.Host{Table: tr.hosts} }, watched(&looks, func(h *hosts.Host, now time.Time) bool {
			o := h.Occupant(hosts.Throttle)
			return o == nil || o.Idle(now)
		}))
		take := func(key string) bool {
			host := key + ".example"
			if key[0] == 's' {
				host = key + ".spent.example"
			}
			r, err := http.NewRequest(http.MethodGet, "http://"+host+"/", nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = tr.RoundTrip(r)
			return err == nil
		}
		visits{t, take, &looks, tr.hosts.Len, 2048}.run()
		runtime.KeepAlive(tr)
	})
}
