package throttle

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/store"
)

// These look inside: of most limits that are not worth telling a Store shows no more
// than that nothing came.

// Which stated quotas are worth telling the other processes.
func TestQuotasWorthTelling(t *testing.T) {
	limit := func(change func(*headers.Limit)) headers.Limit {
		l := headers.Limit{Name: "core", Unit: requests, Remaining: known(10.0), Quota: known(100.0), Reset: known(time.Minute)}
		change(&l)
		return l
	}
	tell := store.Stated{ID: "core", Unit: requests, Remaining: 10, Reset: time.Minute}
	but := func(change func(*store.Stated)) *store.Stated {
		s := tell
		change(&s)
		return &s
	}
	for name, test := range map[string]struct {
		l    headers.Limit
		want *store.Stated
	}{
		"a tenth left":     {limit(func(*headers.Limit) {}), &tell},
		"more":             {limit(func(l *headers.Limit) { l.Remaining.Value = 10.5 }), nil},
		"none":             {limit(func(l *headers.Limit) { l.Remaining.Value = 0 }), but(func(s *store.Stated) { s.Remaining = 0 })},
		"less than none":   {limit(func(l *headers.Limit) { l.Remaining.Value = -1 }), but(func(s *store.Stated) { s.Remaining = 0 })},
		"no size":          {limit(func(l *headers.Limit) { l.Quota.Known = false }), nil},
		"none of no size":  {limit(func(l *headers.Limit) { l.Quota.Known, l.Remaining.Value = false, 0 }), but(func(s *store.Stated) { s.Remaining = 0 })},
		"no unit":          {limit(func(l *headers.Limit) { l.Unit = "" }), &tell},
		"tokens":           {limit(func(l *headers.Limit) { l.Unit = "tokens" }), nil},
		"a partition":      {limit(func(l *headers.Limit) { l.Partition = "x" }), nil},
		"no reset":         {limit(func(l *headers.Limit) { l.Reset.Known = false }), nil},
		"nothing left out": {limit(func(l *headers.Limit) { l.Remaining.Known = false }), nil},
		"full":             {limit(func(l *headers.Limit) { l.ResetMeans = headers.Full }), nil},
		"next":             {limit(func(l *headers.Limit) { l.ResetMeans = headers.Next }), nil},
		"a boundary":       {limit(func(l *headers.Limit) { l.ResetMeans = headers.Boundary }), &tell},
		"too many":         {limit(func(l *headers.Limit) { l.Remaining.Value, l.Quota.Value = 2e15, 1e17 }), nil},
		"a long name":      {limit(func(l *headers.Limit) { l.Name = strings.Repeat("n", 65) }), but(func(s *store.Stated) { s.ID = strings.Repeat("n", 64) })},
		"a far reset":      {limit(func(l *headers.Limit) { l.Reset.Value = math.MaxInt64 }), but(func(s *store.Stated) { s.Reset = store.MaxHorizon })},
		"a past reset":     {limit(func(l *headers.Limit) { l.Reset.Value = -1 }), but(func(s *store.Stated) { s.Reset = 0 })},
	} {
		got, ok := statedByServer(test.l)
		if ok != (test.want != nil) || ok && got != *test.want {
			t.Errorf("%s: %+v, %t", name, got, ok)
		}
	}
	keys := make(map[string]bool)
	for _, k := range [][3]string{{"h", "", ""}, {"h", "r", ""}, {"h", "", "p"}, {"h", "r", "p"}, {"h", "", "q"}, {"i", "", ""}} {
		key := storeKey(k[0], k[1], k[2])
		if keys[key] || strings.Contains(key, "p ") || !strings.HasPrefix(key, k[0]) {
			t.Errorf("%v: key %q", k, key)
		}
		keys[key] = true
	}
	if storeKey("h", "", "") != "h" || storeKey("h", "GET h/r", "") != "h GET h/r" {
		t.Error("keys that other processes know by other names")
	}
}
func TestStoreKeysHideSecrets(t *testing.T) {
	if key := storeKey("api.example", "GET api.example/x", "sk-secret"); strings.Contains(key, "secret") {
		t.Errorf("%q shows the partition", key)
	}
	if storeKey("h", "", "a") == storeKey("h", "", "b") || storeKey("h", "", "") == storeKey("h", "r", "") {
		t.Error("two accounts have one key")
	}
}
