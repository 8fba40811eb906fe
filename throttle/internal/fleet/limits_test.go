package fleet

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/store"
)

// Rates as a store keeps them.
func TestStoreLimits(t *testing.T) {
	ms := time.Millisecond
	for _, test := range []struct {
		rate string
		c    Config
		want []store.Limit
	}{
		{"40 tokens/s bucket 5", Config{}, []store.Limit{{ID: "1stokens", Kind: store.MeterLimit, Unit: 1, Size: 5, Rate: 40, Credit: -1}}},
		{"64/m burst 64", Config{}, []store.Limit{{ID: "1m", Kind: store.LogLimit, Size: 64, Per: time.Minute + 50*ms}}},
		{"64/m burst 63", Config{}, []store.Limit{{ID: "1m", Kind: store.LogLimit, Size: 64, Per: time.Minute + 50*ms},
			{ID: "1m", Kind: store.MeterLimit, Size: 63, Rate: 64.0 / 60, Credit: -1}}},
		{"10/400ms burst 10", Config{}, []store.Limit{{ID: "400ms", Kind: store.LogLimit, Size: 10, Per: 420 * ms}}},
		{"10/s burst 10", Config{Spread: 5 * ms, Lease: 3 * ms}, []store.Limit{{ID: "1s", Kind: store.LogLimit, Size: 10, Per: 1008 * ms}}},
		{"100/h burst 50", Config{Spread: time.Hour}, []store.Limit{{ID: "1h", Kind: store.MeterLimit, Size: 50, Rate: 50.0 / 7200, Credit: 50}}},
		{"128/h burst 65", Config{Spread: time.Hour}, []store.Limit{{ID: "1h", Kind: store.LogLimit, Size: 128, Per: 2 * time.Hour, Grain: 2 * time.Hour / 64},
			{ID: "1h", Kind: store.MeterLimit, Size: 65, Rate: 128.0 / 3600, Credit: -1}}},
	} {
		got, units := storeLimits(rates(test.rate), test.c, time.Unix(0, 0))
		if !reflect.DeepEqual(got, test.want) || units[0] != meter.Requests || (len(units) == 2) != (got[0].Unit == 1) {
			t.Errorf("%s: %+v of %v\nwant %+v", test.rate, got, units, test.want)
		}
	}
	got, units := storeLimits(rates("5/s bucket 1, 6/s bucket 2, 7 tokens/s bucket 1, 9 tokens/90s bucket 1, 9/s burst 9"), Config{}, time.Unix(0, 0))
	var ids []string
	for _, l := range got {
		ids = append(ids, fmt.Sprint(l.ID, " ", l.Kind, " ", l.Unit))
	}
	if want := []string{"1s 1 0", "1s#2 1 0", "1stokens 1 1", "1m30stokens 1 1", "1s 2 0"}; !slices.Equal(ids, want) || len(units) != 2 {
		t.Errorf("%v of %v, want %v", ids, units, want)
	}
	if id := limitID(nil, store.MeterLimit, meter.Spec{Limit: 1, Per: time.Second, Unit: strings.Repeat("u", 60)}); id != "1s"+strings.Repeat("u", 40) {
		t.Errorf("a long unit: %s", id)
	}
	for d, want := range map[time.Duration]string{time.Hour: "1h", 36 * time.Hour: "36h", 90 * time.Minute: "90m", time.Minute: "1m", 90 * time.Second: "1m30s", time.Millisecond: "1ms"} {
		if got := shortly(d); got != want {
			t.Errorf("%v: %s", d, got)
		}
	}
}

// The part of a limit that one of several processes may spend alone.
func TestSharesOfALimit(t *testing.T) {
	for _, test := range []struct {
		l    store.Limit
		n    int
		used float64
		want store.Limit
	}{
		{store.Limit{ID: "a", Kind: store.MeterLimit, Size: 20, Rate: 8, Credit: 5}, 4, 3, store.Limit{ID: "a", Kind: store.MeterLimit, Size: 5, Rate: 2, Credit: -1}},
		{store.Limit{ID: "a", Kind: store.MeterLimit, Size: 2, Rate: 8}, 4, 0, store.Limit{ID: "a", Kind: store.MeterLimit, Size: 1, Rate: 2, Credit: -1}},
		{store.Limit{ID: "a", Kind: store.LogLimit, Size: 20, Per: 10 * time.Second}, 4, 0, store.Limit{ID: "la", Kind: store.MeterLimit, Size: 1, Rate: 0.5, Credit: -1, Per: 10 * time.Second}},
		{store.Limit{ID: "a", Kind: store.CalendarLimit, Size: 20}, 4, 3, store.Limit{ID: "a", Kind: store.CalendarLimit, Size: 4}},
		{store.Limit{ID: "a", Kind: store.CalendarLimit, Size: 20}, 4, 17, store.Limit{ID: "a", Kind: store.CalendarLimit, Size: 0.5}},
		{store.Limit{ID: "a", Kind: store.CalendarLimit, Size: 20}, 4, 30, store.Limit{ID: "a", Kind: store.CalendarLimit, Size: 0.5}},
	} {
		if got := partOf(test.l, test.n, test.used); got != test.want {
			t.Errorf("%+v: got %+v, want %+v", test.l, got, test.want)
		}
	}
}

// A day's quota is one limit in the Store, and two where it is also spread.
func TestStoreLimitsOfADay(t *testing.T) {
	day := meter.Spec{Limit: 100, Per: 24 * time.Hour, Align: time.UTC, Burst: 100}
	for burst, want := range map[int]int{100: 1, 10: 2} {
		day.Burst = burst
		got := storeLimit(day, Config{}, time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC))
		if len(got) != want || got[0].Kind != store.CalendarLimit || got[0].Size != 100 || got[0].Per != 24*time.Hour {
			t.Errorf("burst %d: %+v, want %d limits", burst, got, want)
		}
	}
}
